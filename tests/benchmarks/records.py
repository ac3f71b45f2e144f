"""What was measured: a record a piece of work, and in it a measure for everything it is held against."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

NOISY = 0.25  # of the median, between the quartiles


@dataclass(frozen=True)
class Measure:
    """A median and its spread, with the mark it is held to."""

    value: float
    low: float
    high: float
    noisy: bool = False
    mark: float | None = None
    at_least: bool = False  # else at most

    @property
    def met(self) -> bool | None:
        """Whether the mark is reached; None without a mark."""
        if self.mark is None:
            return None
        return self.value >= self.mark if self.at_least else self.value <= self.mark


@dataclass(frozen=True)
class Worse(Measure):
    """The worse of what several machines have measured."""

    by: tuple[Measure | None, ...] = ()  # one a machine; None: not measured there

    @property
    def met(self) -> bool | None:
        """Whether the mark is reached on every machine; None without a mark."""
        if self.mark is None:
            return None
        return all(m is not None and m.met for m in self.by)

    @property
    def missed(self) -> bool:
        """Whether a machine has measured that it is not."""
        return any(m is not None and m.met is False for m in self.by)


@dataclass
class Record:
    """One row of the results.

    `measures` has gradcli's time as a ratio to each peer's, under the peer's name, and whatever else
    is measured ("peak memory", "MB/s", ...) under its own.
    """

    group: str
    name: str
    size: int
    dtype: str
    measures: dict[str, Measure] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)  # peers' × (inputs + gradients)
    skipped: dict[str, str] = field(default_factory=dict)  # why a peer has no ratio
    commit: str = ""  # what was measured

    @property
    def key(self) -> tuple[str, str, int, str]:
        """What tells it from the other records of a machine."""
        return self.group, self.name, self.size, self.dtype

    @classmethod
    def read(cls, found: dict[str, Any]) -> Record:
        """From what JSON holds."""
        measures = {name: Measure(**m) for name, m in found["measures"].items()}
        return cls(**{**found, "measures": measures})


@dataclass
class Results:
    """All of it, and where it was measured."""

    machine: dict[str, Any]
    records: list[Record] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Take a record, in the place of one of the same work."""
        for k, known in enumerate(self.records):
            if known.key == record.key:
                self.records[k] = record
                return
        self.records.append(record)

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        """From JSON."""
        found = json.loads(path.read_text())
        return cls(found["machine"], [Record.read(r) for r in found["records"]])


def worse(machines: Sequence[Results]) -> list[Record]:
    """The records of several machines as one list, every measure the worse of theirs."""
    if len(machines) == 1:
        return machines[0].records
    by = [{record.key: record for record in one.records} for one in machines]
    keys = dict.fromkeys(key for records in by for key in records)
    return [_worse_record([records.get(key) for records in by]) for key in keys]


def _worse_record(records: Sequence[Record | None]) -> Record:
    there = [record for record in records if record is not None]
    found = replace(there[0], measures={}, peaks={}, skipped={})
    for name in dict.fromkeys(name for record in there for name in record.measures):
        found.measures[name] = _worse([r and r.measures.get(name) for r in records])
    for record in there:
        found.skipped |= record.skipped
        for peer, peak in record.peaks.items():
            found.peaks[peer] = max(peak, found.peaks.get(peer, 0.0))
    return found


def _worse(measures: Sequence[Measure | None]) -> Worse:
    """The worst of measures, all held to the strictest of their marks."""
    there = [m for m in measures if m is not None]
    least = there[0].at_least
    strict, worst = (max, min) if least else (min, max)
    mark = strict((m.mark for m in there if m.mark is not None), default=None)
    held = tuple(m and replace(m, mark=mark) for m in measures)
    chosen = worst(there, key=lambda m: m.value)
    return Worse(
        chosen.value,
        min(m.low for m in there),
        max(m.high for m in there),
        chosen.noisy,
        mark,
        least,
        held,
    )


def stored(folder: Path) -> list[Results]:
    """What the machines of a folder have measured, in order of their files' names."""
    return [Results.read(path) for path in sorted(folder.glob("*.json"))]


def spread(
    values: list[float], mark: float | None = None, *, at_least: bool = False, digits: int = 4
) -> Measure:
    """The median of values, and how far they lie apart."""
    ordered = sorted(float(f"{v:.{digits}g}") for v in values)
    middle = statistics.median(ordered)
    quarter = len(ordered) // 4
    noisy = ordered[-1 - quarter] - ordered[quarter] > NOISY * middle
    return Measure(middle, ordered[0], ordered[-1], noisy, mark, at_least)


def ratio(mine: list[float], other: list[float], mark: float | None = None) -> Measure:
    """The ratios of neighbours in time."""
    return spread([a / b for a, b in zip(mine, other, strict=False)], mark)
