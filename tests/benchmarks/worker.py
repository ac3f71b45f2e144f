"""One process, one library, one problem: answers `run` on standard input with the seconds of one call.

`worker PEER GROUP NAME SIZE DTYPE`
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Work:
    """What is timed: `seconds of call() * scale / repeat`."""

    call: Callable[[], Any]
    repeat: int = 1
    scale: float = 1.0
    inputs: int = 0  # bytes that lived before the call
    least: int = 0  # bytes that the call cannot do without, inputs included
    bits: Callable[[], bool] | None = None


def status(field: str) -> int:
    """Bytes, as the kernel counts them."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return 0


def _check(found: Any, wanted: Any, what: str, tolerance: float) -> None:
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    worst = float(np.abs(found - wanted).max(initial=0)) / scale
    if not worst <= tolerance:
        raise SystemExit(f"{what} is wrong by {worst:.1e}")


def large(peer: str, name: str, size: int, dtype: str) -> Work:
    """Value and gradients of a problem; checked on a small size first."""
    from tests.benchmarks.libraries import LIBRARIES
    from tests.benchmarks.problems import PROBLEMS

    problem = PROBLEMS[name]
    make = LIBRARIES[peer]
    arrays = problem.inputs(problem.small, dtype)
    value, grads = make(problem, arrays)()
    wanted, slopes = problem.by_hand(**{n: a.astype(np.float64) for n, a in arrays.items()})
    tolerance = 1e-9 if dtype == "float64" else 1e-3
    _check(value, wanted, "the value", tolerance)
    for n, slope in slopes.items():
        _check(grads[n], slope, f"the gradient of {n}", tolerance)
    arrays = problem.inputs(size, dtype)
    inputs = sum(a.nbytes for a in arrays.values())
    return Work(
        make(problem, arrays),
        repeat=max(1, 400_000 // inputs),
        inputs=inputs,
        least=2 * inputs,
        bits=(lambda: _same_bits(problem, dtype)) if peer == "gradcli" else None,
    )


def _same_bits(problem: Any, dtype: str) -> bool:
    """Whether blocks have the tape's bits, for any number of threads, and again in a second run."""
    from tests.benchmarks import libraries

    arrays = problem.inputs(problem.middle, dtype)
    value, grads = libraries.tape(problem, arrays)()
    for count in (1, 2, 3):
        call = libraries.gradcli(problem, arrays, count)
        for _ in range(2):
            again, slopes = call()
            if again != value or any(not np.array_equal(slopes[n], grads[n]) for n in grads):
                return False
    return True


def small(peer: str, work: str, size: int) -> Work:
    """Many operations on few elements, checked."""
    from tests.benchmarks import small

    if peer == "commands":  # gradcli, with Python's collector as its commands set it
        import gradcli.__main__

        peer = gradcli.__name__
    call = small.make(peer, work, size)
    _check(call()[0], small.reference(work, size), "the value", 1e-5)
    return Work(call, repeat=max(1, 20_000 // size))


def native(peer: str, name: str, size: int, dtype: str) -> Work:
    """Native code and what it is held against, checked on a small size first."""
    from tests.benchmarks import native, rows
    from tests.benchmarks.problems import PROBLEMS

    work = native.problem_of(name)
    if work in rows.FORMULAS:
        given = rows.inputs(work, rows.SMALL)
        pairs = zip(native.make_rows(peer, work, given)(), rows.by_hand(work, *given), strict=True)
        for found, wanted in pairs:
            _check(found, wanted, "the gradients", 1e-9)
        return Work(native.make_rows(peer, work, rows.inputs(work, size)))
    problem = PROBLEMS[work]
    arrays = problem.inputs(problem.small * 41, dtype)  # large enough to be cut
    _, grads = native.make(peer, problem, arrays)()
    _, slopes = problem.by_hand(**{n: a.astype(np.float64) for n, a in arrays.items()})
    for n, slope in slopes.items():
        _check(grads[n], slope, f"the gradient of {n}", 1e-9 if dtype == "float64" else 1e-3)
    if peer == "gradcli":  # the first call compiles again
        from gradcli.engine.system import c_compiler

        c_compiler._loaded.clear()
    arrays = problem.inputs(size, dtype)
    inputs = sum(a.nbytes for a in arrays.values())
    call = native.make(peer, problem, arrays)
    return Work(call, repeat=max(1, 400_000 // inputs), inputs=inputs, least=2 * inputs)


def small_c(peer: str, name: str, size: int) -> Work:
    """A program of numbers and small arrays as C, checked."""
    from tests.benchmarks import small_c

    call = small_c.make(peer, name, size)
    _check(small_c.told(peer, name, call()), small_c.wanted(name, size), "the result", 1e-9)
    return Work(call, repeat=max(1, 300_000 // size))


def rows(peer: str, work: str, size: int) -> Work:
    """Gradients of every row; checked on a small size first."""
    from tests.benchmarks import rows

    name = work.removesuffix(rows.COMPILED)
    given = rows.inputs(name, rows.SMALL)
    for found, wanted in zip(
        rows.make(peer, work, given)(), rows.by_hand(name, *given), strict=True
    ):
        _check(found, wanted, "the gradients", 1e-9)
    return Work(rows.make(peer, work, rows.inputs(name, size)))


def text(peer: str, size: int) -> Work:
    """Parsing."""
    from tests.benchmarks import text

    call, length = text.make(peer, size)
    return Work(call, scale=size / length, least=length)


def prepare(peer: str, group: str, name: str, size: int, dtype: str) -> Work:
    """What is to be timed."""
    if group == "large":
        return large(peer, name, size, dtype)
    if group == "native":
        return native(peer, name, size, dtype)
    if group == "formulas":
        return small_c(peer, name, size)
    if group == "rows":
        return rows(peer, name, size)
    return text(peer, size) if group == "parse" else small(peer, f"{group}.{name}", size)


def cleared() -> int:
    """The bytes in memory once what was freed is not there to be used again; the peak starts from there."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return status("VmRSS")


def first_call(work: Work) -> dict[str, Any]:
    """How long the first call takes, what memory it needs at its peak, and its bits."""
    before = cleared()
    start = time.perf_counter()
    held = work.call()
    facts: dict[str, Any] = {"first": time.perf_counter() - start}
    if work.least:
        facts["peak"] = (status("VmHWM") - before + work.inputs) / work.least
        facts["bytes"] = work.least
    del held
    if work.bits is not None:
        facts["bits"] = work.bits()
    return facts


def timed(work: Work) -> float:
    """The seconds of one call."""
    gc.collect()
    held = None
    start = time.perf_counter()
    for _ in range(work.repeat):
        held = work.call()
    seconds = time.perf_counter() - start
    del held  # freed outside of the clock
    return seconds * work.scale / work.repeat


def main() -> None:
    """Prepare, say so, and run when told to."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # the same two cores for all
    peer, group, name, size, dtype = sys.argv[1:]
    work = prepare(peer, group, name, int(size), dtype)
    print(json.dumps(first_call(work)), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"seconds": timed(work)}), flush=True)


if __name__ == "__main__":
    main()
