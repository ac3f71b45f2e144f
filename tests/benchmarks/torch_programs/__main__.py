"""Times `graph --torch` against the program alone: `python -m tests.benchmarks torch_programs`.

A process a program runs it in turns: alone, as `--diagnose` watches it, as `--grads` does. CPU seconds of
every step, from the end of one optimizer's step to the end of the next; the least of each counts. What is
done once at the end (the last pass again) is spread over `STEPS` steps. What starts a process is not counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

PROGRAMS = ("gpt", "lstm", "vit", "unet")
WAYS: dict[str, dict[str, bool]] = {"--diagnose": {"norms": True}, "--grads": {"gradients": True}}
STEPS = 20  # that the cost of the end is spread over
RUN = 5  # of each turn


def measure(program: str, rounds: int) -> str:
    """A line about a program."""
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # as the command does
    from importlib import import_module

    from gradcli.graphs.of_torch.torch_watch import Watch

    optimizer: Any = import_module("torch.optim.optimizer")
    times: list[float] = []
    optimizer.register_optimizer_step_post_hook(lambda *_: times.append(time.process_time()))
    path = Path(__file__).parent / f"{program}.py"
    code = compile(path.read_text(), str(path), "exec")
    steps: dict[str, float] = {}
    ends: dict[str, float] = {}
    sys.argv = [str(path), str(RUN)]
    for _ in range(rounds):
        for way in ("", *WAYS):
            times.clear()
            watch: Any = Watch(program=True, values=None, **WAYS[way]) if way else nullcontext()
            with watch:
                exec(code, {"__name__": "__main__", "__file__": str(path)})
            begun = time.process_time()
            if way:
                watch.measure()
            ends[way] = min(ends.get(way, 1e9), time.process_time() - begun)
            least = min(b - a for a, b in pairwise(times))
            steps[way] = min(steps.get(way, 1e9), least)
    alone = steps[""]
    told = [f"{program:5} {1000 * alone:6.1f} ms a step"]
    for way in WAYS:
        whole = (steps[way] + ends[way] / STEPS) / alone
        told.append(f"{way} {whole:.2f} (a step {steps[way] / alone:.2f})")
    return "  ".join(told)


def main(programs: list[str], rounds: int) -> None:
    """Print a line a program, each measured in a process of its own."""
    if len(programs) == 1:
        print(measure(programs[0], rounds), flush=True)
        return
    for program in programs:
        command = [sys.executable, "-m", "tests.benchmarks.torch_programs", program, str(rounds)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main(sys.argv[1:2] or list(PROGRAMS), int((sys.argv[2:] or ["5"])[0]))
