"""Time and memory against size: what grows in a straight line, and nothing faster.

`python -m tests.benchmarks --growth` measures each work in a fresh process and draws docs/growth.svg and
docs/growth-tables.svg; the numbers are kept in docs/growth.json. The clock is the processor's, so that
other work beside it matters little; the memory is what the work needs at its peak.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.interleave import ROOT, environment
from tests.benchmarks.plot import STYLES, figure, prepared
from tests.benchmarks.worker import cleared, status

STORED = ROOT / "docs" / "growth.json"
TABLES = "growth-tables.svg"
SIZES = (1000, 10_000, 100_000, 1_000_000, 10_000_000)


def parsing(n: int) -> Callable[[], Any]:
    from tests.benchmarks import text

    return text.make("gradcli", n)[0]


def gradient(n: int) -> Callable[[], Any]:
    from tests.benchmarks import small

    return small.make("gradcli", "tape.chain", n)


def _graph(n: int) -> Any:
    import gradcli
    from gradcli.graphs import inspect
    from tests.benchmarks import small

    x, w = (gradcli.tensor(0.5, requires_grad=True) for _ in range(2))
    return inspect(small.dag(gradcli, x, w, n))


def tree(n: int) -> Callable[[], Any]:
    graph = _graph(n)
    return lambda: str(graph.tree())


def graph_json(n: int) -> Callable[[], Any]:
    graph = _graph(n)
    return lambda: json.dumps(graph.to_json())


def writing(n: int) -> Callable[[], Any]:
    import numpy as np

    from gradcli.commands.output import to_plain

    array = np.random.default_rng(1).random(n)
    return lambda: to_plain(array)


def compiled(n: int) -> Callable[[], Any]:
    from tests.benchmarks.libraries import gradcli
    from tests.benchmarks.problems import PROBLEMS

    problem = PROBLEMS["exp_sin"]
    return gradcli(problem, problem.inputs(n, "float64"))


_LOSS = "mean((a*x + b - y)**2)"


def _written(parts: int, rows: int, columns: int, files: bool = False) -> str:
    """Parquet in a new folder: so many groups of rows (or files), of so many columns; the path."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as parquet

    folder = Path(tempfile.mkdtemp(prefix="growth-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    values = np.random.default_rng(0).standard_normal((columns, rows))
    table = pa.table(list(values), [f"x{k}" for k in range(columns)])
    if files:
        for k in range(parts):
            parquet.write_table(table, folder / f"{k:07}.parquet")
        return str(folder)
    with parquet.ParquetWriter(folder / "t.parquet", table.schema) as writer:
        for _ in range(parts):
            writer.write_table(table)
    return str(folder / "t.parquet")


def _command(*argv: str) -> Callable[[], Any]:
    """The command in this process, and what it prints.

    Raises RuntimeError for one that fails: nothing would have been measured.
    """
    from gradcli.cli import main

    def call() -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                main(list(argv))
            except SystemExit as ended:
                if ended.code:
                    raise RuntimeError(f"gradcli {argv[0]} ended with {ended.code}") from ended
        return printed.getvalue()

    return call


def _by_rows(path: str) -> Callable[[], Any]:
    given = ["--x", f"@{path}:x0", "--y", f"@{path}:x1", "--a", "1", "--b", "0", "--wrt", "a,b"]
    return _command("grad", _LOSS, *given, "--by-rows")


def rows(n: int) -> Callable[[], Any]:
    return _by_rows(_written(max(n // 100_000, 1), min(n, 100_000), 2))


def groups(n: int) -> Callable[[], Any]:
    return _by_rows(_written(n, 10, 2))


def files(n: int) -> Callable[[], Any]:
    return _by_rows(_written(n, 10, 2, files=True))


def columns(n: int) -> Callable[[], Any]:
    path = _written(1, 100, n)
    return _command("eval", "sum(X**2)", "--X", f"@{path}:x*", "--by-rows")


@dataclass(frozen=True)
class Work:
    """Something whose size may grow."""

    title: str
    unit: str
    make: Callable[[int], Callable[[], Any]]
    largest: int = SIZES[-1]
    picture: str = "growth.svg"


WORKS = {
    "parse": Work("parsing an expression", "bytes", parsing),
    "gradient": Work("a tape, forward and backward", "operations", gradient),
    "tree": Work("a graph as a tree", "nodes", tree, 1_000_000),
    "json": Work("a graph as JSON", "nodes", graph_json, 1_000_000),
    "writing": Work("an array as text", "elements", writing),
    "compiled": Work("a compiled gradient", "elements", compiled),
    "rows": Work("a gradient by rows", "rows", rows, picture=TABLES),
    "groups": Work("the same, groups of 10 rows", "groups", groups, 100_000, TABLES),
    "files": Work("the same, files of 10 rows", "files", files, 10_000, TABLES),
    "columns": Work("a sum over 100 rows", "columns", columns, 10_000, TABLES),
}


@dataclass(frozen=True)
class Point:
    """What a work of a size takes."""

    work: str
    size: int
    seconds: float
    bytes: int


def measure(work: str, size: int) -> Point:
    """In this process: seconds of the processor, and bytes at the peak."""
    import gradcli.__main__  # noqa: F401  the collector is set as for a command

    call = WORKS[work].make(size)
    WORKS[work].make(100)()
    before = cleared()
    seconds = []
    peak = 0
    for turn in range(20):
        if turn >= 1 and sum(seconds) > 2:
            break
        gc.collect()
        start = time.process_time()
        held = call()
        seconds.append(time.process_time() - start)
        peak = peak or status("VmHWM") - before
        del held
    return Point(work, size, float(f"{min(seconds):.3g}"), max(peak, 0))


def points(names: Sequence[str], largest: int) -> Iterator[Point]:
    """Every work at every size, each in a process of its own."""
    for name in names:
        for size in SIZES:
            if size > min(largest, WORKS[name].largest):
                continue
            line = [sys.executable, "-m", "tests.benchmarks.growth", name, str(size)]
            done = subprocess.run(
                line, capture_output=True, text=True, cwd=ROOT, env=environment(1), check=False
            )
            if done.returncode:
                words = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
                print(f"skipped {name} {size}: {words[-1]}", file=sys.stderr)
                break
            found = Point(**json.loads(done.stdout))
            print(f"{name} {size}: {found.seconds} s, {found.bytes:,} bytes", file=sys.stderr)
            yield found


def stored(path: Path = STORED) -> list[Point]:
    """The points of a file."""
    return [Point(**point) for point in json.loads(path.read_text())] if path.exists() else []


def record(names: Sequence[str], largest: int) -> None:
    """Measure, keep and draw; what is not measured stays as it was."""
    known = {(point.work, point.size): point for point in stored()}
    for point in points(names, largest):
        known[point.work, point.size] = point
        ordered = sorted(known.values(), key=lambda p: (list(WORKS).index(p.work), p.size))
        lines = ",\n".join(" " + json.dumps(asdict(one)) for one in ordered)
        STORED.write_text(f"[\n{lines}\n]\n")
    for picture in {work.picture for work in WORKS.values()}:
        shown = [point for point in stored() if WORKS[point.work].picture == picture]
        if shown:
            draw(shown, ROOT / "docs" / picture)


def draw(found: Sequence[Point], path: Path) -> None:
    """Two panels on logarithmic scales, with the slope of what grows in proportion."""
    with figure(path, 1) as (whole, grid):
        titles = ("seconds of the processor", "memory at the peak, MB")
        for axis, title, value in zip(
            grid[0], titles, (lambda p: p.seconds, lambda p: p.bytes / 1e6), strict=True
        ):
            prepared(axis)
            axis.set_title(title, fontsize=10)
            shown = {n: w for n, w in WORKS.items() if any(p.work == n for p in found)}
            units = list(dict.fromkeys(work.unit for work in shown.values()))
            axis.set_xlabel(f"size: {', '.join(units[:-1])} or {units[-1]}")
            for (name, work), (colour, marker) in zip(shown.items(), STYLES.values(), strict=False):
                line = [(p.size, value(p)) for p in found if p.work == name and value(p) > 0]
                axis.plot(
                    *zip(*line, strict=True),
                    color=colour,
                    marker=marker,
                    markersize=5,
                    label=f"{work.title} ({work.unit})",
                )
            low = min(value(p) for p in found if p.size == SIZES[0] and value(p) > 0)
            ends = (SIZES[0], max(p.size for p in found))
            proportional = [low / 3 * n / SIZES[0] for n in ends]
            axis.plot(
                ends, proportional, color="black", linestyle=(0, (4, 2)), label="in proportion"
            )
        whole.legend(
            *grid[0][0].get_legend_handles_labels(),
            ncols=4,
            fontsize=8.5,
            loc="lower center",
            frameon=False,
        )


def main() -> None:
    """`python -m tests.benchmarks.growth WORK SIZE`: a point as JSON."""
    print(json.dumps(asdict(measure(sys.argv[1], int(sys.argv[2])))))


if __name__ == "__main__":
    main()
