"""What is measured, by whom, and the marks."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field

from tests.benchmarks import native, small_c
from tests.benchmarks.cold import COMMANDS, cold
from tests.benchmarks.interleave import FEWEST, Facts, interleaved
from tests.benchmarks.problems import PROBLEMS
from tests.benchmarks.records import Measure, Record, ratio, spread
from tests.benchmarks.rows import COMPILED, FORMULAS
from tests.benchmarks.starts import starts
from tests.benchmarks.tables import tables

GROUPS = (
    "cold",
    "starts",
    "parse",
    "tape",
    "replay",
    "large",
    "rows",
    "native",
    "formulas",
    "sizes",
    "tables",
)
PEAK = 1.25  # × (inputs + gradients), where these have
LARGE = 16_000_000  # bytes
SMALL_GRAPHS = ("chain", "dag")


@dataclass
class Job:
    """One piece of work, for processes that take turns."""

    group: str
    name: str
    size: int
    dtype: str = "float64"
    marks: dict[str, float] = field(default_factory=dict)
    peers: dict[str, int] = field(default_factory=dict)  # the largest size that each can do
    threads: int = 1
    slow: int = 1_000_000  # from here on there are fewer rounds

    @property
    def kind(self) -> str:
        """The group that a worker knows."""
        if self.group == "sizes":
            return "large" if self.name in PROBLEMS else "tape"
        return self.group


def large(group: str, name: str, size: int, dtype: str, marks: dict[str, float]) -> Job:
    """A problem of large arrays."""
    # Some keep tens of times the inputs, and all workers of a problem live at once.
    much = 1_000_000 if name == "chain30" else 10_000_000
    most = dict.fromkeys(("tape", "autograd", "mygrad", "sympy"), much)
    peers = {peer: most.get(peer, size) for peer in ("tape", *PROBLEMS[name].peers)}
    return Job(group, name, size, dtype, marks, peers, threads=2, slow=100_000_000)


def jobs() -> Iterator[Job]:
    """Everything that workers do."""
    ever = sys.maxsize
    parsers = {"lark": ever, "ast": ever, "sympy": ever}
    marks = {"MB/s": 3.0, "bytes a byte": 50.0}
    linear = {**marks, "1 MB": 1.2}
    yield Job("parse", "text", 1_000_000, "text", marks, parsers)
    yield Job("parse", "text", 10_000_000, "text", linear, {"1 MB": ever}, slow=0)
    tapes = {"torch": ever, "jax": 100, "autograd": 30_000, "mygrad": 30_000}
    for graph in SMALL_GRAPHS:
        for n in (30, 1000, 30_000, 1_000_000):
            peers = {**tapes, "commands": ever} if n == 1_000_000 else tapes
            yield Job("tape", graph, n, marks={"torch": 0.45}, peers=peers)
    for graph in SMALL_GRAPHS:
        jax = (
            1000 if graph == "chain" else 100
        )  # XLA fuses a DAG into work that grows exponentially
        for n in (10, 100, 1000):
            yield Job("replay", graph, n, marks={"torch": 0.2}, peers={**tapes, "jax": jax})
    for problem in PROBLEMS.values():
        for (size, dtype), marks in problem.marks.items():
            yield large("large", problem.name, size, dtype, marks)
    for name in FORMULAS:
        yield Job("rows", name, 100_000, marks={"torch": 0.7}, peers={"torch": ever})
        yield Job("rows", name + COMPILED, 100_000, marks={"jax": 1.3}, peers={"jax": ever})
    for name, size, dtype, count, marks, peers in native.works():
        most = dict.fromkeys(peers, ever)
        yield Job("native", name, size, dtype, marks, most, threads=count, slow=100_000_000)
    for name, size, marks, peers in small_c.works():
        yield Job("formulas", name, size, marks=marks, peers=dict.fromkeys(peers, ever))
    for n in (1000, 10_000, 100_000, 1_000_000, 10_000_000):
        yield large("sizes", "exp_sin", n, "float64", {})
    for n in (10, 100, 10_000, 100_000):
        yield Job("sizes", "chain", n, peers=tapes)


@dataclass
class Wanted:
    """Which work, and how much of it."""

    groups: Sequence[str] = GROUPS
    only: Sequence[str] = ("",)  # names contain one of them
    largest: int = sys.maxsize
    rounds: int = 7
    minutes: float = math.inf
    done: Container[tuple[str, str, int, str]] = ()  # keys of records that are there

    def has(self, group: str, name: str, size: int, dtype: str) -> bool:
        """Whether a piece of work is to be measured."""
        named = any(part in name for part in self.only)
        known = (group, name, size, dtype) in self.done
        return group in self.groups and named and size <= self.largest and not known


def measure(wanted: Wanted, pythons: dict[str, str]) -> Iterator[Record]:
    """One record a row of the table, until the time is over."""
    end = time.monotonic() + 60 * wanted.minutes
    commands = [name for name in COMMANDS if wanted.has("cold", name, 1, "process")]
    if commands:
        yield from cold(pythons, wanted.rounds * 5, commands)
    if "starts" in wanted.groups:
        yield from starts(wanted, min(1_000_000, wanted.largest))
    if "tables" in wanted.groups:
        yield from tables(wanted, min(1_000_000, wanted.largest), pythons)
    own = ("gradcli", "blocks", "tape", "commands", "1 MB", "lark", "ast")
    ours = dict.fromkeys(own, sys.executable)
    if "torch" in pythons:
        ours["inductor"] = pythons["torch"]
    chosen = [job for job in jobs() if wanted.has(job.group, job.name, job.size, job.dtype)]
    for k, job in enumerate(chosen):
        left = end - time.monotonic()
        if left <= 0:
            return
        able = {p for p, most in job.peers.items() if job.size <= most}
        used = {p: e for p, e in {**ours, **pythons}.items() if p == "gradcli" or p in able}
        turns = min(wanted.rounds, max(FEWEST, wanted.rounds // 3))
        turns = turns if job.size >= job.slow else wanted.rounds
        command = (job.kind, job.name, str(job.size), job.dtype)
        share = left / (len(chosen) - k)
        yield record(job, *interleaved(used, command, turns, job.threads, share))


def record(
    job: Job, seconds: dict[str, list[float]], facts: dict[str, Facts], skipped: dict[str, str]
) -> Record:
    """What the workers found, held against the marks."""
    found = Record(job.group, job.name, job.size, job.dtype, skipped=skipped)
    if "gradcli" not in seconds:
        return found
    mine, own = seconds.pop("gradcli"), facts.pop("gradcli")
    measures = found.measures
    for peer, other in seconds.items():
        measures[peer] = ratio(mine, other, job.marks.get(peer))
    for peer, fact in facts.items():
        if (name := f"first {peer}") in job.marks:
            measures[name] = _fixed(own["first"] / fact["first"], job.marks[name])
    if job.kind == "parse":
        speeds = [job.size / s / 1e6 for s in mine]
        measures["MB/s"] = spread(speeds, job.marks.get("MB/s"), at_least=True)
        measures["bytes a byte"] = _fixed(own["peak"], job.marks["bytes a byte"])
    if job.group == "large":
        measures["peak memory"] = _fixed(own["peak"], PEAK if own["bytes"] >= LARGE else None)
        measures["GB/s"] = spread([own["bytes"] / s / 1e9 for s in mine])
        measures["first call"] = _fixed(own["first"] / statistics.median(mine))
        measures["same bits"] = Measure(own["bits"], own["bits"], own["bits"], False, 1, True)
        found.peaks = {peer: round(f["peak"], 2) for peer, f in facts.items()}
    return found


def _fixed(value: float, mark: float | None = None) -> Measure:
    return spread([value], mark, digits=3)
