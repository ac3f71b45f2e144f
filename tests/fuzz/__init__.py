"""Generators that anyone can run for hours: `python -m tests.fuzz --minutes 60`.

A generator is a module of this package with a function

    def run(seed: int, seconds: float) -> list[str]

which tries cases until its seconds are over and returns one string for every failure: a minimal
reproducer, and what differed. `cases` gives the numbered cases with a random generator each:

    def run(seed, seconds):
        return [failure for random in cases(seed, seconds) if (failure := attempt(random))]

The case of a number depends on the seed and the number alone, so that a run with the same seed
tries the same cases in the same order, and the clock decides only how many; `--cases` does so
without the clock.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import time
from collections.abc import Iterator
from types import ModuleType

# How many cases every generator tries, if the command line says so; else its seconds decide.
count: int | None = None


def cases(seed: int, seconds: float) -> Iterator[random.Random]:
    """A random generator for each case, as many as there is time for (or `count`)."""
    end = time.monotonic() + seconds
    number = 0
    while number < count if count is not None else time.monotonic() < end:
        yield random.Random(f"{seed} {number}")
        number += 1


def generators() -> dict[str, ModuleType]:
    """The modules here that can be run, by name; one that lacks what it imports is an error."""
    found = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        if not module.name.startswith(("_", "test_")):
            loaded = importlib.import_module(f"{__name__}.{module.name}")
            if hasattr(loaded, "run"):
                found[module.name] = loaded
    return found
