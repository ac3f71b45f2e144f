"""Fresh processes, one a library, that take turns at one piece of work."""

from __future__ import annotations

import json
import math
import os
import subprocess
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
Facts = dict[str, Any]
FEWEST = 3  # rounds that make a median
PAUSE = 0.1  # seconds in which threads of the one before, which wait in a loop for more work, fall asleep


def environment(threads: int) -> dict[str, str]:
    """What a process is told that may use so many threads."""
    names = ("BENCHMARK_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    own = {"PYTHONPATH": str(ROOT), "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    return {**os.environ, **own, **dict.fromkeys(names, str(threads))}


class Worker:
    """A process that runs one problem with one library, when it is told to."""

    def __init__(self, python: str, peer: str, job: tuple[str, ...], threads: int) -> None:
        self.process = subprocess.Popen(
            [python, "-m", "tests.benchmarks.worker", peer, *job],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(threads),
            cwd=ROOT,
        )
        self.facts = self._read()

    def _read(self) -> Facts:
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        if not line:
            words = self.process.stderr.read().strip().splitlines()
            code = self.process.wait()
            raise RuntimeError(words[-1] if words else f"the process ended with {code}")
        return json.loads(line)

    def run(self) -> float:
        """The seconds of one call."""
        assert self.process.stdin is not None
        time.sleep(PAUSE)
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        return float(self._read()["seconds"])

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def interleaved(
    pythons: dict[str, str],
    job: tuple[str, ...],
    rounds: int,
    threads: int,
    share: float = math.inf,
) -> tuple[dict[str, list[float]], dict[str, Facts], dict[str, str]]:
    """(seconds by peer, what its process said first, why a peer was skipped).

    share: seconds, after which the rounds end that are more than `FEWEST`.
    """
    start = time.monotonic()
    workers: dict[str, Worker] = {}
    skipped: dict[str, str] = {}
    seconds: dict[str, list[float]] = {}
    try:
        for peer, python in pythons.items():
            try:
                workers[peer] = Worker(python, peer, job, threads)
                seconds[peer] = []
            except (RuntimeError, OSError) as error:
                skipped[peer] = str(error)
        for turn in range(rounds):
            if turn >= FEWEST and time.monotonic() - start > share:
                break
            for peer in list(seconds):
                try:
                    seconds[peer].append(workers[peer].run())
                except (RuntimeError, BrokenPipeError) as error:
                    skipped[peer] = str(error)
                    del seconds[peer]
    finally:
        for worker in workers.values():
            worker.close()
    return seconds, {peer: workers[peer].facts for peer in seconds}, skipped
