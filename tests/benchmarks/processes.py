"""Whole processes: the start of a command, and parsing."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PIECE = "x0*3.5 + sin(y)*2 - (a+b)/c1**2 + exp(-x*0.125)*w1 - 2.5e-3/b + "


def _seconds(command: list[str]) -> float:
    """The wall time of a process, from start to end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    quiet = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, quiet, n) for n in (0, 1, 2)]
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environment, file_actions=actions)
    os.waitpid(pid, 0)
    seconds = time.perf_counter() - start
    os.close(quiet)
    return seconds


def _entry() -> list[str]:
    """The installed script, as users start it; `python -m` where there is none."""
    script = Path(sys.executable).with_name("gradcli")
    if script.exists():
        return [str(script)]
    code = "import sys; from gradcli.cli import main; sys.argv[0] = 'gradcli'; sys.exit(main())"
    return [sys.executable, "-c", code]


COMMANDS = {
    "grad": (["grad", "2*dot(x,x)", "--x", "0,1,2,3"], 1.2),
    "--help": (["--help"], 0.6),
    "--version": (["--version"], 0.6),
    "completion": (["completion", "bash"], 0.6),
    "graph": (["graph", "2*dot(x,x)", "--x", "0,1,2,3", "--color", "always"], 1.7),
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


def cold(peers: dict[str, str], rounds: int) -> Iterator[dict[str, Any]]:
    """Commands against `python -c 'import numpy'`, and against the peers' scripts."""
    entry = _entry()
    lines = {name: [*entry, *args] for name, (args, _) in COMMANDS.items()}
    lines["numpy"] = [sys.executable, "-c", "import numpy"]
    skipped = {}
    for peer, script in SCRIPTS.items():
        if peer not in peers:
            continue
        line = [peers[peer], "-c", script]
        if subprocess.run(line, capture_output=True, check=False).returncode:
            skipped[peer] = "not installed"
        else:
            lines[f"peer {peer}"] = line
    seconds: dict[str, list[float]] = {name: [] for name in lines}
    for line in lines.values():
        _seconds(line)
    for turn in range(rounds):
        for name, line in lines.items():
            if turn < 5 or not name.startswith("peer"):
                seconds[name].append(_seconds(line))
    for name, (_, mark) in COMMANDS.items():
        ratios = {"numpy": _ratio(seconds[name], seconds["numpy"])}
        if name == "grad":
            for peer in SCRIPTS:
                if f"peer {peer}" in seconds:
                    ratios[peer] = _ratio(seconds[name], seconds[f"peer {peer}"])
        yield {
            "group": "cold",
            "name": name,
            "size": 1,
            "dtype": "process",
            "ratios": ratios,
            "marks": {"numpy": mark},
            "skipped": skipped if name == "grad" else {},
        }


def _ratio(mine: list[float], other: list[float]) -> dict[str, Any]:
    from tests.benchmarks.__main__ import ratio

    return ratio(mine, other)


_PARSE = """
import gc, json, sys, time, resource
peer, size = sys.argv[1], int(sys.argv[2])
piece = {piece!r}
text = piece * (size // len(piece)) + "1"
sys.setrecursionlimit(10**6)
if peer == "gradcli":
    from gradcli.language import parse
elif peer == "ast":
    import ast
    lines = "\\n".join([piece * 15 + "1"] * (size // (15 * len(piece))))
    def parse(text):
        return ast.parse(lines)
elif peer == "lark":
    from tests.language.lark_oracle import _parser
    made = _parser()
    def parse(text):
        made.options.postlex.source = text
        return made.parse(text)
else:
    from sympy.parsing.sympy_parser import parse_expr as parse
parse(piece + "1")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({{"first": 0, "peak": 0, "bytes": 0}}), flush=True)
for line in sys.stdin:
    gc.collect()
    start = time.perf_counter()
    kept = parse(text)
    seconds = time.perf_counter() - start
    rss = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / len(text)
    del kept
    print(json.dumps({{"seconds": seconds, "rss": rss}}), flush=True)
"""


def parsing(peers: dict[str, str], rounds: int) -> Iterator[dict[str, Any]]:
    """1 MB of expression: MB/s beside `ast.parse` and lark; and 10 MB against 1 MB."""
    code = _PARSE.format(piece=PIECE)
    names = {"gradcli": (1_000_000, "gradcli"), "10MB": (10_000_000, "gradcli")}
    names |= {"lark": (100_000, "lark"), "ast": (1_000_000, "ast")}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    rss, skipped = 0.0, {}
    processes = {}
    for name, (size, peer) in names.items():
        process = subprocess.Popen(
            [sys.executable, "-c", code, peer, str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
        )
        assert process.stdout is not None
        if process.stdout.readline():
            processes[name] = process
        else:
            skipped[name] = "failed"
    for _ in range(max(3, rounds // 2)):
        for name, process in list(processes.items()):
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("run\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                skipped[name] = "failed"
                del processes[name]
                continue
            found = json.loads(line)
            seconds[name].append(found["seconds"] / names[name][0])
            if name == "gradcli":
                rss = max(rss, found["rss"])
    for process in processes.values():
        process.kill()
        process.communicate()
    mine = seconds["gradcli"]
    yield {
        "group": "parse",
        "name": "1 MB",
        "size": 1_000_000,
        "dtype": "text",
        "ratios": {
            peer: _ratio(mine, other)
            for peer, other in seconds.items()
            if peer not in ("gradcli", "10MB") and other
        },
        "marks": {"lark": 1 / 6},
        "skipped": skipped,
        "mb_per_s": 1e-6 / statistics.median(mine),
        "bytes_per_byte": rss,
    }
    yield {
        "group": "parse",
        "name": "10 MB, a byte",
        "size": 10_000_000,
        "dtype": "text",
        "ratios": {"1 MB": _ratio(seconds["10MB"], mine)},
        "marks": {"1 MB": 1.2},
        "skipped": {},
    }
