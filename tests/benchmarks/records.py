"""What was measured: a record a piece of work, and in it a measure for everything it is held against."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, field
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

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        """From JSON."""
        found = json.loads(path.read_text())
        return cls(found["machine"], [Record.read(r) for r in found["records"]])


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
