"""One process, one library, one problem: answers `run` on standard input with the seconds of one call."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def _status(field: str) -> int:
    """Bytes, as the kernel counts them."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return 0


def _reset_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _close(found: Any, wanted: Any, what: str, tolerance: float) -> None:
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    worst = float(np.abs(found - wanted).max(initial=0)) / scale
    if not worst <= tolerance:
        raise SystemExit(f"{what} is wrong by {worst:.1e}")


def prepare_large(peer: str, name: str, size: int, dtype: str) -> tuple[Callable[[], Any], int]:
    """(the call, bytes of inputs and gradients); checked on a small size first."""
    from tests.benchmarks.libraries import LIBRARIES
    from tests.benchmarks.problems import PROBLEMS

    problem = PROBLEMS[name]
    make = LIBRARIES[peer]
    arrays = problem.inputs(problem.small, dtype)
    value, grads = make(problem, arrays)()
    wanted, slopes = problem.by_hand(**{n: a.astype(np.float64) for n, a in arrays.items()})
    tolerance = 1e-9 if dtype == "float64" else 1e-3
    _close(value, wanted, "the value", tolerance)
    for n, slope in slopes.items():
        _close(grads[n], slope, f"the gradient of {n}", tolerance)
    if peer == "gradcli":
        _check_bits(name, dtype)
    arrays = problem.inputs(size, dtype)
    total = 2 * sum(a.nbytes for a in arrays.values())
    return make(problem, arrays), total


def _check_bits(name: str, dtype: str) -> None:
    """Blocks and the tape agree to the bit, for any number of threads."""
    import os

    from tests.benchmarks.libraries import LIBRARIES
    from tests.benchmarks.problems import PROBLEMS

    problem = PROBLEMS[name]
    arrays = problem.inputs(
        300_001 if problem.small == 1003 and name[:1] not in "sb" else 301, dtype
    )
    before = os.environ.get("BENCHMARK_THREADS")
    wanted = LIBRARIES["tape"](problem, arrays)()
    for count in "123":
        os.environ["BENCHMARK_THREADS"] = count
        found = LIBRARIES["gradcli"](problem, arrays)()
        same = found[0] == wanted[0] and all(
            np.array_equal(found[1][n], wanted[1][n]) for n in wanted[1]
        )
        if not same:
            raise SystemExit(f"{count} threads: not the tape's bits")
    if before is not None:
        os.environ["BENCHMARK_THREADS"] = before


def prepare_small(peer: str, work: str, size: int) -> tuple[Callable[[], Any], int]:
    """(the call, repetitions), checked."""
    from tests.benchmarks import small

    call = small.make(peer, work, size)
    wanted = small.reference(work, size)
    _close(call()[0], wanted, "the value", 1e-5)
    return call, max(1, 20_000 // size)


def main() -> None:
    """`worker PEER GROUP NAME SIZE DTYPE`."""
    peer, group, name, size, dtype = sys.argv[1:6]
    repeat = 1
    if group == "large":
        call, bytes_moved = prepare_large(peer, name, int(size), dtype)
        _reset_peak()
        before = _status("VmRSS")
        start = time.perf_counter()
        held = call()
        first = time.perf_counter() - start
        inputs = bytes_moved // 2
        peak = (_status("VmHWM") - before + inputs) / bytes_moved
        del held
    else:
        bytes_moved, peak = 0, 0.0
        start = time.perf_counter()
        call, repeat = prepare_small(peer, f"{group}.{name}", int(size))
        first = time.perf_counter() - start
    print(json.dumps({"first": first, "peak": peak, "bytes": bytes_moved}), flush=True)
    for line in sys.stdin:
        if line.strip() != "run":
            break
        gc.collect()
        start = time.perf_counter()
        for _ in range(repeat):
            held = call()
        seconds = (time.perf_counter() - start) / repeat
        held = None  # freed outside of the clock
        print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
