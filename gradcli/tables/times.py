"""Dates and times in cells as numbers: seconds since the first row, or days where there are dates alone."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from gradcli.tables.table_errors import TableError

if TYPE_CHECKING:
    from gradcli.tables.reading_options import Reading

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
UNITS["d"] = 24 * UNITS["h"]
_SPELT = {"d": "days", "h": "hours", "min": "minutes", "s": "seconds"}
ORDERS = ("dmy", "mdy", "ymd")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
# Compiled at the first use, to start faster.
_CELL = (
    r"(?:(?P<first>\d{1,4})(?P<mark>[-/.])(?P<second>\d\d?)(?P=mark)(?P<third>\d{4}|\d\d?)"
    r"|(?P<day>\d\d?)[- ]?(?P<month>[A-Za-z]{3})[a-z]*[- ]?(?P<year>\d{4}|\d\d))?"
    r"(?:(?:T|,? +|(?<!.))(?P<hour>\d{1,3}):(?P<minute>\d\d)(?::(?P<second_>\d\d))?"
    r"(?:[.,](?P<part>\d+))?(?: ?(?P<half>[AaPp])[Mm])?)?"
    r"(?P<zone>Z| ?[-+]\d\d:?\d\d)?"
)


class Clock:
    """How the times of a column are numbers. unit: of the numbers. origin: what they count from, in ns.

    order: of day, month and year where the year is not first; "" where two are possible. first: they are days
    that count from the first row, and nobody asked for that.
    """

    __slots__ = (
        *("column", "example", "first", "is_date", "order", "origin", "said", "shown", "tell"),
        "unit",
    )

    def __init__(self, column: str, unit: str, order: str, is_date: bool) -> None:
        self.column, self.unit, self.order, self.is_date = column, unit, order, is_date
        self.origin = 0
        self.first = False
        self.example = self.shown = ""
        self.tell: Any = None
        self.said = False

    def number(self, cell: str) -> float:
        """The number of a cell. Raises ValueError for what is not a time."""
        if not self.said:
            self._say()
        scale, count = UNITS[self.unit], nanoseconds(cell, self.order) - self.origin
        whole, rest = divmod(count, scale)
        return whole + rest / scale

    def refuse(self) -> NoReturn:
        """Raise TableError for dates whose order is not known."""
        raise TableError(
            f"column {self.column}: `{self.example}`: the day first, or the month?",
            hint="--date-order dmy or --date-order mdy says which",
        )

    def _say(self) -> None:
        if not self.order:
            self.refuse()
        self.said = True
        if self.tell is not None:
            what = _SPELT.get(self.unit, self.unit)
            days = f", {_WORDS[self.order]}" if self.order != "ymd" and self.is_date else ""
            way = "; --time-origin DATE counts from another day" if self.first else ""
            self.tell(f"{self.column} is {what} since {self.shown}{days}{way}")


_WORDS = {"dmy": "day first", "mdy": "month first", "ymd": "year first"}


_EPOCH_NAME = (
    r"(?:unix|posix|epoch|utc)?[ _]?(?:time ?stamp|time|date ?time|date|epoch|unix|posix|\bts)"
    r"[ _]?(?:utc|(?P<unit>ms|us|ns|s))?"
)
_EPOCH = (1e9, 2.5e9)  # seconds since 1970 in the years 2001 to 2049


def epoch_unit(heading: str, numbers: Any) -> str | None:
    """The unit in which numbers count from 1970; None where their name or one of them does not say so."""
    import numpy as np

    bare = re.sub(r"[\[(].*?[\])]", "", heading).strip().lower()
    if (told := re.fullmatch(_EPOCH_NAME, bare)) is None:
        return None
    finite = np.asarray(numbers)[np.isfinite(numbers)]
    if not len(finite):
        return None
    for unit in ("s", "ms", "us", "ns") if told["unit"] is None else (told["unit"],):
        scale = UNITS["s"] / UNITS[unit]
        if (finite >= _EPOCH[0] * scale).all() and (finite <= _EPOCH[1] * scale).all():
            return unit
    return None


def is_time(text: str, dated: bool = False) -> bool:
    """Whether a text is a date, a time or both; dated: whether it has a date."""
    match = re.fullmatch(_CELL, text.strip())
    if match is None:
        return False
    has_date = bool(match["first"] or match["day"])
    return has_date if dated else has_date or match["hour"] is not None


def nanoseconds(cell: str, order: str) -> int:
    """A date, a time or both as a count. Raises ValueError for anything else."""
    match = re.fullmatch(_CELL, cell.strip())
    if match is None or not cell.strip():
        raise ValueError(cell)
    days = 0
    if match["first"]:
        days = _date(match["first"], match["second"], match["third"], order)
    elif match["day"]:
        month = _MONTHS.index(match["month"].lower()) + 1  # ValueError for what is none
        days = datetime.date(_year(match["year"]), month, int(match["day"])).toordinal()
    elif match["hour"] is None:
        raise ValueError(cell)
    seconds = 0
    if match["hour"] is not None:
        hour, minute, second = (int(match[n] or 0) for n in ("hour", "minute", "second_"))
        if minute > 59 or second > 60 or (days and hour > 24):
            raise ValueError(cell)
        if match["half"]:
            hour = hour % 12 + 12 * (match["half"] in "pP")
        seconds = (60 * hour + minute) * 60 + second
    if (zone := (match["zone"] or "").strip()) and zone != "Z":
        digits = zone[1:].replace(":", "")
        east = (int(digits[:2]) * 60 + int(digits[2:])) * 60
        seconds -= east if zone[0] == "+" else -east
    part = (match["part"] or "")[:9].ljust(9, "0")
    return (days * 86400 + seconds) * UNITS["s"] + int(part)


def _date(first: str, second: str, third: str, order: str) -> int:
    if len(first) == 4:
        numbers = (int(first), int(second), int(third))
    elif order == "ymd":
        numbers = (_year(first), int(second), int(third))
    else:
        day, month = (first, second) if order == "dmy" else (second, first)
        numbers = (_year(third), int(month), int(day))
    return datetime.date(*numbers).toordinal()


def _year(text: str) -> int:
    return int(text) if len(text) == 4 else int(text) + (2000 if int(text) < 69 else 1900)


def clock_of(
    column: str, cells: Iterable[str], order: str | None, unit: str | None
) -> Clock | None:
    """The clock of a column whose cells begin like these; None where they are no times."""
    found: list[re.Match[str]] = []
    texts = [cell for cell in cells if cell]
    for cell in texts:
        if (match := re.fullmatch(_CELL, cell.strip())) is None:
            return None
        found.append(match)
    dated = [m for m in found if m["first"] or m["day"]]
    timed = [m for m in found if m["hour"]]
    if not dated and not timed:
        return None
    split = [(int(m["first"]), int(m["second"])) for m in dated if m["first"]]
    if order is None:
        order = ""
        if all(len(m["first"] or "0000") == 4 for m in dated):
            order = "ymd"
        elif any(a > 12 for a, _ in split) or all(m["mark"] == "." for m in dated if m["first"]):
            order = "dmy"  # a point between them is German, Polish, Russian, …: the day comes first
        elif any(b > 12 for _, b in split):
            order = "mdy"
    made = Clock(column, unit or ("s" if timed else "d"), order, bool(dated))
    made.example = texts[0]
    return made


class Instants(NamedTuple):
    """A column of dates and times that a program has counted: numbers of `unit` since 1970, or midnight.

    gone: where there is none. kind: "date", "instant" or "time". written: how the time of a row is written.
    """

    counts: Any
    unit: str
    gone: Any
    kind: str
    written: Callable[[int], str]

    def numbers(self, column: str, file: str, reading: Reading) -> Any:
        """The numbers that the same in a text would be: instants that are all at midnight are dates."""
        import numpy as np

        scale = UNITS[self.unit]
        there = np.arange(len(self.counts)) if self.gone is None else np.flatnonzero(~self.gone)
        if not len(there):
            return np.full(len(self.counts), np.nan)
        dates = self.kind == "date"
        if self.kind == "instant" and column not in reading.units:
            dates = not (self.counts[there] % (UNITS["d"] // scale)).any()
        first = self.written(int(there[0]))
        if dates:
            first = re.split("[ T]", first)[0]
        clock = Clock(column, reading.unit(column, dates), "ymd", self.kind != "time")
        clock.tell = lambda words: reading.note(file, words)
        clock.origin, clock.shown = reading.origin(clock, first, "ymd")
        clock.first = clock.unit == "d" and reading.how.time_origin is None
        clock.number(first)  # which says what it counts from
        reading.clocks[column] = clock
        epoch = 0 if self.kind == "time" else nanoseconds("1970-01-01", "ymd")
        whole, rest = divmod(clock.origin - epoch, scale)
        unit = UNITS[clock.unit]
        return (self.counts - whole) * (scale / unit) - rest / unit


__all__ = [
    *("ORDERS", "UNITS", "Clock", "Instants", "clock_of", "epoch_unit", "is_time", "nanoseconds")
]
