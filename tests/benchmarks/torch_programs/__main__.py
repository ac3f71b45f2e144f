"""Times `graph --torch` against the program alone: `-m tests.benchmarks.torch_programs [ROUNDS] [STEPS]`.

CPU seconds of whole commands on one thread, in turns; the least of each. The ratios are written by program.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

PROGRAMS = ("gpt", "lstm", "vit", "unet")
WAYS = ("", "--diagnose", "--grads")


def seconds(program: str, way: str, steps: int) -> float:
    """The CPU seconds of a command."""
    file = str(Path(__file__).parent / f"{program}.py")
    command = [sys.executable, file, str(steps)]
    if way:
        watched = ["-m", "gradcli", "graph", "--torch", file, way, "--", str(steps)]
        command = [sys.executable, *watched]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a line a program."""
    rounds, steps = (int(one) for one in [*sys.argv[1:], *("3", "20")[len(sys.argv) - 1 :]])
    for program in PROGRAMS:
        found = {way: [0.0] * 0 for way in WAYS}
        for _ in range(rounds):
            for way in WAYS:
                found[way].append(seconds(program, way, steps))
        least = {way: min(times) for way, times in found.items()}
        ratios = "  ".join(f"{way} {least[way] / least['']:.2f}" for way in WAYS[1:])
        print(f"{program:5} {least['']:6.2f} s  {ratios}", flush=True)


if __name__ == "__main__":
    main()
