"""Where it is measured: the processor, the memory, and the libraries that are there."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CODE = Path(__file__).parents[2] / "gradcli"
STORED = Path(__file__).parents[2] / "docs" / "benchmarks"  # a file a processor
PEERS = (
    "duckdb",
    "polars",
    "torch",
    "jax",
    "autograd",
    "mygrad",
    "numexpr",
    "sympy",
    "casadi",
    "ddx-ad",
)


def version(peer: str, python: str) -> str | None:
    """A library's version in an environment; None where it is not installed."""
    code = f"import importlib.metadata as m; print(m.version({peer!r}))"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


def find_peers(given: str) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """(pythons, versions, those that are not installed) of `NAME` or `NAME=PYTHON`, with commas."""
    pythons, versions, missing = {}, {}, []
    for part in given.split(",") if given else PEERS:
        name, _, python = part.partition("=")
        python = python or sys.executable
        found = version(name, python)
        if found is None:
            missing.append(name)
        else:
            pythons[name], versions[name] = python, found
    return pythons, versions, missing


def bandwidth() -> float:
    """GB/s of one thread that copies a large array: bytes read and written."""
    import numpy as np

    a, b = np.ones(10_000_000), np.empty(10_000_000)
    best = 0.0
    for _ in range(7):
        start = time.perf_counter()
        b[:] = a
        best = max(best, 2 * a.nbytes / (time.perf_counter() - start) / 1e9)
    return best


def processor() -> str:
    """Its name, as the kernel knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def short_name(processor: str) -> str:
    """A processor's make and line: "Intel Xeon" for "Intel(R) Xeon(R) Processor"."""
    plain = re.sub(r"\((R|TM)\)|\b(CPU|Processor)\b.*|@.*", "", processor, flags=re.IGNORECASE)
    return " ".join(plain.split()) or "unknown"


def file_name(processor: str) -> str:
    """The name of the file that a machine's records are kept in."""
    return "-".join(re.findall(r"[a-z0-9]+", short_name(processor).lower())) + ".json"


def commit() -> str:
    """The last commit of the code that is measured, with a `+` where it has been changed since."""

    def said(*words: str) -> str:
        line = ["git", "-C", str(CODE), *words, "--", "."]
        return subprocess.run(line, capture_output=True, text=True, check=False).stdout.strip()

    try:
        last = said("log", "-1", "--format=%h")
        return last + "+" * bool(said("status", "--porcelain"))
    except OSError:  # no git
        return ""


def machine(versions: dict[str, str]) -> dict[str, Any]:
    """All of it."""
    import numpy as np

    from gradcli.version import __version__

    return {
        "processor": processor(),
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "copy_gb_per_s": round(bandwidth(), 1),
        "versions": {
            "Python": platform.python_version(),
            "NumPy": np.__version__,
            "gradcli": __version__,
            **versions,
        },
    }
