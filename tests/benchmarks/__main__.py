"""`python -m tests.benchmarks [GROUP ...] [--peers torch=PYTHON,...] [--rounds N] [--json FILE]`.

A worker is a fresh process for one library and one problem. Workers of a problem take turns (A B C A B
C ...), so that what else the machine does falls on all of them; what is reported is the median of the
ratios of neighbours in time, and its spread. Bare seconds are never quoted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.problems import PROBLEMS
from tests.benchmarks.processes import cold, parsing

ROOT = Path(__file__).parents[2]
GROUPS = ("cold", "parse", "tape", "replay", "large")
PEERS = ("torch", "jax", "autograd", "mygrad", "numexpr", "sympy")
MARKS = {"tape": {"torch": 0.45}, "replay": {"torch": 0.2}}
NOISY = 0.25


class Worker:
    """A process that runs one problem with one library, when it is told to."""

    def __init__(self, python: str, peer: str, job: tuple[str, ...], threads: int) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "BENCHMARK_THREADS": str(threads),
            "OMP_NUM_THREADS": str(threads),
            "OPENBLAS_NUM_THREADS": str(threads),
        }
        self.peer = peer
        self.process = subprocess.Popen(
            [python, "-m", "tests.benchmarks.worker", peer, *job],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=ROOT,
        )
        self.facts = self._read()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        if not line:
            words = self.process.stderr.read().strip().splitlines()
            raise RuntimeError(words[-1] if words else "the worker ended")
        return json.loads(line)

    def run(self) -> float:
        """The seconds of one call."""
        assert self.process.stdin is not None
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        return float(self._read()["seconds"])

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def interleaved(
    peers: dict[str, str], job: tuple[str, ...], rounds: int, threads: int
) -> tuple[dict[str, list[float]], dict[str, dict[str, Any]], dict[str, str]]:
    """(seconds by peer, facts by peer, why a peer was skipped)."""
    workers: list[Worker] = []
    skipped: dict[str, str] = {}
    for peer, python in peers.items():
        try:
            workers.append(Worker(python, peer, job, threads))
        except (RuntimeError, OSError) as error:
            skipped[peer] = str(error)
    seconds: dict[str, list[float]] = {w.peer: [] for w in workers}
    for _ in range(rounds):
        for w in list(workers):
            try:
                seconds[w.peer].append(w.run())
            except (RuntimeError, BrokenPipeError) as error:
                skipped[w.peer] = str(error)
                workers.remove(w)
                seconds.pop(w.peer)
    for w in workers:
        w.close()
    return seconds, {w.peer: w.facts for w in workers}, skipped


def ratio(mine: list[float], other: list[float]) -> dict[str, Any]:
    """The median of the paired ratios, and their spread."""
    pairs = [a / b for a, b in zip(mine, other, strict=False)]
    middle = statistics.median(pairs)
    low, high = sorted(pairs)[len(pairs) // 4], sorted(pairs)[-1 - len(pairs) // 4]
    return {
        "ratio": middle,
        "min": min(pairs),
        "max": max(pairs),
        "noisy": (high - low) / middle > NOISY,
    }


def jobs(
    groups: list[str], largest: int, only: str
) -> Iterator[tuple[str, str, int, str, dict[str, float]]]:
    """(group, name, size, dtype, marks) of everything that workers do."""
    if "tape" in groups:
        for graph in ("chain", "dag"):
            for n in (30, 1000, 30_000, 1_000_000):
                yield "tape", graph, n, "float64", MARKS["tape"]
    if "replay" in groups:
        for graph in ("chain", "dag"):
            for n in (10, 100, 1000):
                yield "replay", graph, n, "float64", MARKS["replay"]
    if "large" in groups:
        for problem in PROBLEMS.values():
            for (size, dtype), marks in problem.marks.items():
                if size <= largest and only in problem.name:
                    yield "large", problem.name, size, dtype, marks


def suited(group: str, name: str, size: int, peers: dict[str, str]) -> dict[str, str]:
    """The peers that do this work (in reasonable time)."""
    if group == "large":
        able = {"gradcli", "tape", *PROBLEMS[name].peers}
        # These need tens of times the inputs' memory, and all workers of a problem live at once.
        if size >= 100_000_000 or (name == "chain30" and size >= 10_000_000):
            able -= {"tape", "autograd", "mygrad"}
        return {p: e for p, e in peers.items() if p in able}
    slow = {"jax": 100, "autograd": 30_000, "mygrad": 30_000}
    others = {p: e for p, e in peers.items() if p in ("torch", *slow)}
    return {
        "gradcli": peers["gradcli"],
        **{p: e for p, e in others.items() if size <= slow.get(p, size)},
    }


def measure(
    groups: list[str], peers: dict[str, str], rounds: int, largest: int, only: str
) -> Iterator[dict[str, Any]]:
    """One record a row of the table."""
    if "cold" in groups:
        yield from cold(peers, rounds * 5)
    if "parse" in groups:
        yield from parsing(peers, rounds)
    for group, name, size, dtype, marks in jobs(groups, largest, only):
        threads = 2 if group == "large" else 1
        used = suited(group, name, size, peers)
        slow = size >= (100_000_000 if group == "large" else 1_000_000)
        turns = max(3, rounds // 3) if slow else rounds
        seconds, facts, skipped = interleaved(used, (group, name, str(size), dtype), turns, threads)
        mine = seconds.get("gradcli", [])
        record: dict[str, Any] = {
            "group": group,
            "name": name,
            "size": size,
            "dtype": dtype,
            "threads": threads,
            "ratios": {},
            "marks": marks,
            "skipped": skipped,
        }
        for peer, other in seconds.items():
            if peer != "gradcli" and mine:
                record["ratios"][peer] = ratio(mine, other)
        if group == "large":
            record["peak"] = {p: round(f["peak"], 2) for p, f in facts.items()}
            if mine:
                record["first"] = round(facts["gradcli"]["first"] / statistics.median(mine), 2)
        yield record


def bandwidth() -> float:
    """GB/s of one thread that copies a large array."""
    import numpy as np

    a, b = np.ones(20_000_000), np.empty(20_000_000)
    b[:] = a
    start = time.perf_counter()
    for _ in range(5):
        b[:] = a
    return 5 * 2 * a.nbytes / (time.perf_counter() - start) / 1e9


def machine() -> dict[str, Any]:
    """Where it was measured."""
    import numpy as np

    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "copy_gb_per_s": round(bandwidth(), 1),
    }


def show(records: list[dict[str, Any]], where: dict[str, Any]) -> None:
    """The table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=" · ".join(f"{k} {v}" for k, v in where.items()))
    for column in ("work", "size", "peer", "ratio", "spread", "mark", "", "peak memory"):
        table.add_column(column)
    for record in records:
        rows = list(record["ratios"].items()) or [("-", None)]
        for k, (peer, found) in enumerate(rows):
            mark = record["marks"].get(peer)
            name = f"{record['group']} {record['name']}" if k == 0 else ""
            size = f"{record['size']} {record['dtype']}" if k == 0 else ""
            peaks = record.get("peak", {})
            peak = f"{peaks.get('gradcli', '')} : {peaks.get(peer, '')}" if peaks else ""
            if found is None:
                table.add_row(name, size, peer, "", "", "", str(record["skipped"])[:60], "")
                continue
            verdict = "" if mark is None else "yes" if found["ratio"] <= mark else "MISSED"
            table.add_row(
                name,
                size,
                peer,
                f"{found['ratio']:.3f}{' noisy' if found['noisy'] else ''}",
                f"{found['min']:.3f}-{found['max']:.3f}",
                "" if mark is None else f"<= {mark}",
                verdict,
                peak,
            )
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    for record in records:
        for peer, why in record["skipped"].items():
            console.print(f"skipped {peer} for {record['name']} {record['size']}: {why[:100]}")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--peers", default="", help="names, or NAME=PYTHON, with commas between")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--largest", type=int, default=10_000_000, help="elements of an input")
    parser.add_argument("--only", default="", help="large problems whose names contain this")
    parser.add_argument("--json", type=Path, default=None)
    given = parser.parse_args()
    wrong = set(given.groups) - set(GROUPS)
    if wrong:
        parser.error(f"unknown group {min(wrong)}: choose from {', '.join(GROUPS)}")
    peers = {"gradcli": sys.executable, "tape": sys.executable}
    for part in filter(None, given.peers.split(",")) if given.peers else PEERS:
        name, _, python = part.partition("=")
        peers[name] = python or sys.executable
    where = machine()
    records = []
    groups = list(given.groups) or list(GROUPS)
    for record in measure(groups, peers, given.rounds, given.largest, given.only):
        records.append(record)
        print(json.dumps(record), file=sys.stderr, flush=True)
        if given.json is not None:
            found = {"machine": where, "results": records}
            given.json.write_text(json.dumps(found, indent=1) + "\n")
    show(records, where)


if __name__ == "__main__":
    main()
