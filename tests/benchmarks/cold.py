"""Whole processes, from start to end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.benchmarks.interleave import ROOT
from tests.benchmarks.records import Record, ratio

EXAMPLE = ["2*dot(x,x)", "--x", "0,1,2,3"]
# name: (arguments, mark against `python -c "import numpy"`, on a terminal)
COMMANDS: dict[str, tuple[list[str], float, bool]] = {
    "grad": (["grad", *EXAMPLE], 1.1, False),
    "--help": (["--help"], 0.6, False),
    "--version": (["--version"], 0.6, False),
    "completion": (["completion", "bash"], 0.6, False),
    "graph": (["graph", *EXAMPLE], 1.7, True),
}
SCRIPTS = {
    "torch": "import torch; x=torch.arange(4.,requires_grad=True); (2*x.dot(x)).backward(); "
    "print(x.grad)",
    "jax": "import jax, jax.numpy as n; print(jax.grad(lambda x: 2*n.dot(x,x))(n.arange(4.)))",
    "autograd": "import autograd, autograd.numpy as n; "
    "print(autograd.grad(lambda x: 2*n.dot(x,x))(n.arange(4.)))",
    "mygrad": "import mygrad; x=mygrad.arange(4.); (2*x@x).backward(); print(x.grad)",
    "sympy": "from sympy import *; v=symbols('a:4'); print([diff(2*sum(x*x for x in v), x) for x in v])",
}


def run(command: list[str], terminal: bool = False) -> float:
    """The seconds of a process whose output nobody reads (terminal: it sees one)."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # bytecode is there, as after an installation
    ends = os.openpty() if terminal else (os.open(os.devnull, os.O_RDWR),)
    actions = [(os.POSIX_SPAWN_DUP2, ends[-1], n) for n in (0, 1, 2)]
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environment, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - start
    for end in ends:
        os.close(end)
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return seconds


def entry() -> list[str]:
    """The installed script, as users start it; the same call where there is none."""
    script = Path(sys.executable).with_name("gradcli")
    if script.exists():
        return [str(script)]
    code = (
        "import sys; from gradcli.__main__ import main; sys.argv[0] = 'gradcli'; sys.exit(main())"
    )
    return [sys.executable, "-c", code]


def cold(pythons: dict[str, str], rounds: int, names: Sequence[str]) -> Iterator[Record]:
    """Commands against `python -c "import numpy"`, and `grad` against the peers' scripts."""
    lines = {"numpy": [sys.executable, "-c", "import numpy"]}
    lines |= {name: [*entry(), *COMMANDS[name][0]] for name in names}
    skipped = {}
    for peer in SCRIPTS.keys() & pythons.keys() if "grad" in names else ():
        line = [pythons[peer], "-c", SCRIPTS[peer]]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode:
            skipped[peer] = done.stderr.strip().splitlines()[-1]
        else:
            lines[peer] = line
    seconds: dict[str, list[float]] = {name: [] for name in lines}
    for turn in range(-1, rounds):  # the first compiles, and warms the disk's cache
        for name, line in lines.items():
            if turn >= 5 and name in SCRIPTS:
                continue  # far away, and slow
            taken = run(line, name in COMMANDS and COMMANDS[name][2])
            if turn >= 0:
                seconds[name].append(taken)
    for name in names:
        mark = COMMANDS[name][1]
        measures = {"numpy": ratio(seconds[name], seconds["numpy"], mark)}
        if name == "grad":
            measures |= {p: ratio(seconds[name], seconds[p]) for p in SCRIPTS if p in lines}
        yield Record(
            "cold", name, 1, "process", measures, skipped=skipped if name == "grad" else {}
        )
