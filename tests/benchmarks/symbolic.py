"""Derivatives as formulas beside SymPy's and SymEngine's: `python -m tests.benchmarks symbolic`.

A process a library; each call is a child of it, so that no call finds what one before it has kept. They take
turns, and what is printed is the least processor time of a call, in milliseconds, and characters. Where a
library has no mark, it is not asked. Rounds end with the minutes (3), but for the first.
"""

from __future__ import annotations

import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.benchmarks.machine import commit, find_peers, processor

PEERS = "sympy,symengine"
ORDERS = (("exp(-x**2)*sin(x)", 0.1), ("log(1+x**2)*sqrt(x)", 0.15))
FACTORS = (70, 80)
LENGTHS, SEEDS = (50, 100, 200), 8
FIRST = (5, 8, 10, 12, 15, 18, 20)
FIRST_SEEDS = 5
TICK = 0.1  # milliseconds; some clocks of processor time stand still for longer than a call takes
MOST = 20  # seconds of a call; what takes longer is left out
MINUTES = 3.0
# What a peer is asked for, by the first word of the name.
PEERS_OF = {
    "product": (),
    "order": ("sympy", "symengine"),
    "long": ("symengine",),
    "first": ("sympy",),
}
Find = Callable[[str, Sequence[str], int], Sequence[str]]


class Asked(NamedTuple):
    """A formula, the variables to differentiate by, and how often."""

    text: str
    by: tuple[str, ...] = ("x",)
    order: int = 1


# -- what is differentiated -------------------------------------------------------------------------
def formula(operations: int, seed: int) -> str:
    """A random formula of x, y and z with about so many operations, which has values everywhere."""
    numbers = random.Random(f"{operations} {seed}")

    def tree(n: int) -> str:
        if n <= 0:
            names = ["x", "y", "z"] * 3
            return numbers.choice([*names, str(numbers.randint(2, 5))])
        kind = numbers.random()
        if kind < 0.3:
            word = numbers.choice("sin cos exp tanh sqrt log sin cos".split())
            if word in ("sqrt", "log") and n >= 3:
                return f"{word}(1 + ({tree(n - 3)})**2)"
            return f"{'sin' if word in ('sqrt', 'log') else word}({tree(n - 1)})"
        if kind < 0.38:
            return f"({tree(n - 1)})**{numbers.choice([2, 3])}"
        left = numbers.randint(0, n - 1)
        a, b = tree(left), tree(n - 1 - left)
        sign = numbers.choice("++-**/")
        if sign == "/" and n >= 4:
            left = numbers.randint(0, n - 4)
            return f"({tree(left)})/(2 + ({tree(n - 4 - left)})**2)"
        return f"({a} {'*' if sign == '/' else sign} {b})"

    return tree(operations)


def with_x(operations: int, seed: int) -> str:
    """The first random formula from a seed on that has an x."""
    while "x" not in formula(operations, seed).replace("exp", ""):
        seed += FIRST_SEEDS
    return formula(operations, seed)


def product(factor: str, count: int) -> Asked:
    """The product of a factor in each of so many variables, by all of them."""
    names = tuple(f"x{k}" for k in range(count))
    return Asked("*".join(factor.format(n, k + 1) for k, n in enumerate(names)), names)


def works() -> dict[str, Asked]:
    """All that is measured, by name."""
    made = {
        f"product {f} {n}": product(f, n) for f in ("{}", "sin({})", "({}+{})") for n in FACTORS
    }
    made |= {f"order 8 of {f}": Asked(f, ("x",), 8) for f, _ in ORDERS}
    made |= {f"long {n} {k}": Asked(formula(n, k)) for n in LENGTHS for k in range(SEEDS)}
    made |= {
        f"first {n} {k}": Asked(with_x(n, 1000 + k)) for n in FIRST for k in range(FIRST_SEEDS)
    }
    return made


# -- a process of one library -----------------------------------------------------------------------
def _gradcli() -> Find:
    import gradcli

    def find(text: str, by: Sequence[str], order: int) -> Sequence[str]:
        found = gradcli.diff(text, wrt=list(by), order=order)
        return [found] if isinstance(found, str) else list(found.values())

    return find


def _sympy() -> Find:
    import sympy

    def find(text: str, by: Sequence[str], order: int) -> Sequence[str]:
        read = sympy.sympify(text)
        return [str(sympy.diff(read, sympy.Symbol(n), order)) for n in by]

    return find


def _symengine() -> Find:
    import symengine

    def find(text: str, by: Sequence[str], order: int) -> Sequence[str]:
        read = symengine.sympify(text)
        found = []
        for n in by:
            slope = read
            for _ in range(order):
                slope = slope.diff(symengine.Symbol(n))
            found.append(str(slope))
        return found

    return find


LIBRARIES: dict[str, Callable[[], Find]] = {
    "gradcli": _gradcli,
    "sympy": _sympy,
    "symengine": _symengine,
}


def serve(library: str) -> None:
    """Answer the names of works on lines with [milliseconds, characters], each by a child."""
    find, known = LIBRARIES[library](), works()
    find("x", ["x"], 1)  # its modules are read once
    for line in sys.stdin:
        asked = known[line.strip()]
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (MOST, MOST))
            start = time.process_time()
            found = find(*asked)
            took = max(1000 * (time.process_time() - start), TICK)
            os.write(write, json.dumps([took, sum(map(len, found))]).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as told:
            said = told.read()
        os.waitpid(child, 0)
        print(said or "[]", flush=True)


# -- the table --------------------------------------------------------------------------------------
def measure(
    pythons: dict[str, str], names: Sequence[str], rounds: int, minutes: float = MINUTES
) -> dict[str, Any]:
    """{library: {name: (least milliseconds, characters)}}; libraries take turns at each work.

    Each turn is told as it comes.
    """
    line = ["-m", "tests.benchmarks.symbolic"]
    end = time.monotonic() + 60 * minutes
    processes = {
        library: subprocess.Popen(
            [python, *line, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for library, python in pythons.items()
    }
    found: dict[str, Any] = {library: {} for library in pythons}
    try:
        for turn in range(rounds):
            for name in names:
                if turn and time.monotonic() > end:
                    return found
                asked = ("gradcli", *PEERS_OF[name.partition(" ")[0]])
                told = []
                for library in (p for p in asked if p in processes):
                    took = _asked(processes[library], name)
                    if took:
                        before = found[library].get(name, (math.inf, 0))[0]
                        found[library][name] = (min(before, took[0]), took[1])
                    told.append(f"{library} {took[0]:.1f} ms" if took else f"{library} > {MOST} s")
                print(f"{turn + 1}/{rounds} {name}: {', '.join(told)}", file=sys.stderr, flush=True)
    finally:
        for process in processes.values():
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
    return found


def _asked(process: subprocess.Popen[str], name: str) -> Any:
    """What a library's process says of a work; [] where it takes too long."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(name + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline() or "[]")


def rows(found: dict[str, Any]) -> list[tuple[str, str, dict[str, str]]]:
    """(work, mark, {library: what it took}) of all that was measured."""
    made: list[tuple[str, str, dict[str, str]]] = []

    def times(names: Sequence[str], mark: float) -> tuple[str, dict[str, str]]:
        got = {
            library: [by[n][0] / 1000 for n in names]
            for library, by in found.items()
            if all(n in by for n in names)
        }
        return f"≤ {mark:g} s", {w: " · ".join(f"{t:.3f} s" for t in ts) for w, ts in got.items()}

    for factor, said in (("{}", "x₁·x₂·…"), ("sin({})", "sin(x₁)·…"), ("({}+{})", "(x₁+1)·…")):
        names = [f"product {factor} {n}" for n in FACTORS]
        mark, got = times(names, 0.3)
        for library, by in found.items():
            if library in got:
                a, b = (by[n][0] for n in names)
                grown = math.log(b / a) / math.log(FACTORS[1] / FACTORS[0])
                got[library] += f", exponent {grown:.1f}"
        title = f"product {said} of {FACTORS[0]} · {FACTORS[1]} factors, by all variables"
        made.append((title, f"{mark}, exponent ≤ 2.2", got))
    for text, most in ORDERS:
        made.append((f"order 8 of `{text}`", *times([f"order 8 of {text}"], most)))
    for n in LENGTHS:
        got = {}
        for library, by in found.items():
            ratios, took = [], []
            for k in range(SEEDS):
                name = f"long {n} {k}"
                if name in by and name in found.get("symengine", {}):
                    ratios.append(by[name][1] / found["symengine"][name][1])
                    took.append(by[name][0])
            if ratios:
                middle, worst = statistics.median(ratios), max(ratios)
                got[library] = f"{middle:.2f} (to {worst:.2f}), {statistics.median(took):.0f} ms"
        made.append((f"length of derivatives of {n} operations, × SymEngine's", "≤ 1.0", got))
    for n in FIRST:
        got = {}
        for library, by in found.items():
            took = [by[f"first {n} {k}"][0] for k in range(FIRST_SEEDS) if f"first {n} {k}" in by]
            if took:
                got[library] = f"{statistics.median(took):.1f} (to {max(took):.0f}) ms"
        mark = f"≤ {15 + (n - FIRST[0]) * 25 / (FIRST[-1] - FIRST[0]):.0f} ms"
        made.append((f"first derivative of {n} operations", mark, got))
    return made


def show(given: str = PEERS, rounds: int = 3, only: str = "", minutes: float = math.inf) -> None:
    """Measure, and print the table; without a bound in MINUTES."""
    pythons, versions, missing = find_peers(given or PEERS)
    for peer in missing:
        print(f"skipped {peer}: not installed", file=sys.stderr)
    pythons = {"gradcli": sys.executable, **pythons}
    names = [n for n in works() if any(text in n for text in only.split(","))]
    found = measure(pythons, names, rounds, MINUTES if math.isinf(minutes) else minutes)
    print(
        f"{processor()}, commit {commit()}; " + ", ".join(f"{p} {v}" for p, v in versions.items())
    )
    print(
        "",
        "| work | mark | " + " | ".join(pythons) + " |",
        "|---|---|" + "---|" * len(pythons),
        sep="\n",
    )
    for title, mark, got in rows(found):
        if got:
            print(f"| {title} | {mark} | " + " | ".join(got.get(p, "") for p in pythons) + " |")


if __name__ == "__main__":
    serve(sys.argv[1])
