"""Generators that anyone can run for hours: `python -m tests.fuzz --minutes 60`.

A generator is a module of this package with a function

    def run(seed: int, seconds: float) -> Iterator[str]

which tries cases until its seconds are over and yields one string for every failure, as it finds it: a
minimal reproducer, and what differed. `cases` gives the numbered cases with a random generator each:

    def run(seed, seconds):
        yield from filter(None, map(attempt, cases(seed, seconds)))

The case of a number depends on the seed and the number alone, so that a run with the same seed
tries the same cases in the same order, and the clock decides only how many; `--cases` does so
without the clock, and `--start` goes on where a run has stopped. What runs a program does so `limited`
in time and memory: one that takes too much of either is a failure, and takes neither the machine nor
the run.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import resource
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

# How many cases every generator tries, if the command line says so; else its seconds decide.
count: int | None = None

# The number of the first of them, if the command line says so.
start = 0

# What one program may take, on a machine that has other work too.
SECONDS = 60.0
MEGABYTES = 2000


class TooLong(BaseException):
    """A program is not done in its time; no `except Exception` on its way takes it for a refusal."""


@contextmanager
def limited(seconds: float = SECONDS, megabytes: int = MEGABYTES) -> Iterator[None]:
    """Inside, what takes longer raises TooLong, and what takes more memory than before MemoryError.

    For the main thread, as all signals.
    """

    def stop(*_: Any) -> None:
        raise TooLong(f"is not done in {seconds:g} s")

    bound = resource.getrlimit(resource.RLIMIT_DATA)
    before = signal.signal(signal.SIGALRM, stop)
    resource.setrlimit(resource.RLIMIT_DATA, (_taken() + megabytes * 2**20, bound[1]))
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # once more where a finalizer has swallowed it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_DATA, bound)
        signal.signal(signal.SIGALRM, before)


def _taken() -> int:
    """The bytes that this process has for data, as RLIMIT_DATA counts them."""
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    return pages * resource.getpagesize()


def ran_out(error: BaseException | None) -> bool:
    """Whether there was too little memory, however it was said."""
    return error is not None and (isinstance(error, MemoryError) or ran_out(error.__cause__))


def cases(seed: int, seconds: float) -> Iterator[random.Random]:
    """A random generator for each case, as many as there is time for (or `count`)."""
    end = time.monotonic() + seconds
    number = start
    while number < start + count if count is not None else time.monotonic() < end:
        yield random.Random(f"{seed} {number}")
        number += 1


def once_round(names: Iterable[str], seed: int, seconds: float) -> Iterator[str]:
    """The names in the order of the seed, those that there is time for; it is said where to go on.

    Where names are added, the others keep their order.
    """
    order = sorted(names, key=lambda name: random.Random(f"{seed} {name}").random())
    number = start
    for name, _ in zip(order[start:], cases(seed, seconds), strict=False):
        yield name
        number += 1
    print(f"{number} of {len(order)}" + (f": --start {number}" if number < len(order) else ""))


def generators() -> dict[str, ModuleType]:
    """The modules here that can be run, by name; one that lacks what it imports is an error."""
    found = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        if not module.name.startswith(("_", "test_")):
            loaded = importlib.import_module(f"{__name__}.{module.name}")
            if hasattr(loaded, "run"):
                found[module.name] = loaded
    return found
