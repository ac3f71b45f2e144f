"""An axis of a picture: its ends, its scale (even, logarithmic, of dates), its marks, its label."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import numpy as np

from gradcli.commands.plots.curves import ticks

Ends = tuple[float, float]
_SECOND = 10**9  # in nanoseconds, as all of time is counted
_MINUTE, _HOUR, _DAY = 60 * _SECOND, 3600 * _SECOND, 86400 * _SECOND
# Steps between marks that are all of one length.
_STEPS = [
    *(n * _SECOND // 1000 for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14)),
]
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000)  # those that are not


class Dates(NamedTuple):
    """How the numbers of an axis are times: nanoseconds since the first day of year 1 are
    `origin + number*unit`. dated: whether the day is known, not only the time of day."""

    origin: int
    unit: int
    dated: bool = True

    def instant(self, number: float) -> int:
        """The time of a number."""
        return self.origin + round(float(number) * self.unit)

    def number(self, instant: int) -> float:
        """The number of a time."""
        return (instant - self.origin) / self.unit

    def marks(self, low: float, high: float, most: int) -> tuple[list[tuple[float, str]], str]:
        """(the marks from low to high with their texts, what the texts leave out: the day or the year)."""
        first, last = self.instant(low), self.instant(high)
        fitting = (step for step in _STEPS if (last - first) // step + 1 <= most)
        step = next(fitting, None)
        if step is not None or not self.dated:
            step = step or (last - first) // max(most, 1) + 1
            at = -(-first // step) * step
            instants = list(range(at, last + 1, step))
            return [(self.number(t), self._text(t, step)) for t in instants], self._rest(
                instants, step
            )
        begin, end = _day(first), _day(last)
        months = (end.year - begin.year) * 12 + end.month - begin.month
        by = next((n for n in _MONTHS if months // n + 1 <= most), _MONTHS[-1])
        number = -(-(begin.year * 12 + begin.month - 1 + (begin.day > 1)) // by) * by
        found = []
        while number <= end.year * 12 + end.month - 1 and number < 12 * 10_000:
            day = datetime.date(number // 12, number % 12 + 1, 1)
            text = f"{day:%Y-%m}" if by % 12 else f"{day.year}"
            found.append((self.number(day.toordinal() * _DAY), text))
            number += by
        return found, ""

    def _text(self, instant: int, step: int) -> str:
        if step >= _DAY:
            return f"{_day(instant):%m-%d}"
        seconds, part = divmod(instant % _DAY, _SECOND)
        text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
        if step < _MINUTE:
            text += f":{seconds % 60:02}"
        return text + (f".{part // 10**6:03}" if step < _SECOND else "")

    def _rest(self, instants: list[int], step: int) -> str:
        if not self.dated or not instants:
            return ""
        begin, end = _day(instants[0]), _day(instants[-1])
        if step < _DAY:
            return f"{begin}" if begin == end else f"{begin} to {end}"
        return f"{begin.year}" if begin.year == end.year else f"{begin} to {end}"


def _day(instant: int) -> datetime.date:
    return datetime.date.fromordinal(min(max(instant // _DAY, 1), datetime.date.max.toordinal()))


class Axis(NamedTuple):
    """ends: what of it is shown. log: whether the scale is logarithmic; then the ends are above 0."""

    ends: Ends
    label: str = ""
    log: bool = False
    dates: Dates | None = None

    def share(self, numbers: Any) -> Any:
        """Where numbers are, from 0 at the low end to 1 at the high one; nan for what has no place."""
        numbers = np.asarray(numbers, float)
        low, high = self.ends
        if self.log:
            with np.errstate(all="ignore"):
                numbers = np.where(numbers > 0, np.log10(numbers), np.nan)
            low, high = np.log10(low), np.log10(high)
        return (numbers - low) / (high - low)

    def even(self, count: int) -> Any:
        """As many numbers from one end to the other, evenly on the scale."""
        return np.geomspace(*self.ends, count) if self.log else np.linspace(*self.ends, count)

    def marks(self, most: int) -> list[tuple[float, str]]:
        """The marks, at most so many, each with its text."""
        if self.dates is not None:
            return self.dates.marks(*self.ends, most)[0]
        found = _decades(*self.ends, most) if self.log else []
        found = found or ticks(*self.ends, most)
        return list(zip(found, _texts(found), strict=True))

    def full_label(self, most: int) -> str:
        """The label, with the day or the year that the marks of dates leave out."""
        if self.dates is None:
            return self.label
        rest = self.dates.marks(*self.ends, most)[1]
        return f"{self.label} ({rest})" if rest else self.label


def _texts(numbers: list[float]) -> list[str]:
    """Numbers in as many digits as tell them apart."""
    texts: list[str] = []
    for digits in range(6, 18):
        texts = [f"{number:.{digits}g}" for number in numbers]
        if len(set(texts)) == len(texts):
            break
    return texts


def _decades(low: float, high: float, most: int) -> list[float]:
    """Powers of ten, and 2 and 5 times these where there is room; none where both would be fewer than two."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [d * 10.0**k for k in range(first, last + 1) for d in digits]
        found = [n for n in found if low * (1 - 1e-9) <= n <= high * (1 + 1e-9)]
        if 2 <= len(found) <= most:
            return found
    tens = [k for k in range(first, last + 1) if low * (1 - 1e-9) <= 10.0**k <= high * (1 + 1e-9)]
    if len(tens) <= most:
        return []
    step = -(-len(tens) // max(most, 1))
    return [10.0**k for k in tens if k % step == 0]


__all__ = ["Axis", "Dates", "Ends"]
