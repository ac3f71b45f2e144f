"""Whether the tests notice: a rule, a shape or a guard is broken, one at a time, and the tests must fail.

    python -m tests.mutations                 50 places, the same every time; exit code 1 under 48 caught
    python -m tests.mutations --seed 7 --count 20

The sources are copied first; nothing in the checkout is touched. A place that stays unnoticed is printed
with its change: either a test is missing, or the code there does nothing.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHARE_CAUGHT = 48 / 50
# What holds each room, the likeliest to notice first: files, and folders for what else they hold.
ROWS = [
    *("tests/engine/registry/test_samples.py", "tests/engine/registry/test_complex.py"),
    "tests/engine/registry/test_refusals.py",
    *(
        "tests/engine/registry/test_against_torch.py",
        "tests/operators/composites/test_nn_recorded.py",
    ),
    *("tests/test_torch_answers.py", "tests/engine/registry", "tests/test_torch_says.py"),
    *("tests/operators/movement", "tests/operators/primitives", "tests/operators/composites"),
    *("tests/transforms/test_forward_reverse.py", "tests/transforms/test_forward_over_reverse.py"),
]
TESTS = {
    **{
        room: [*ROWS, "tests/columns/compiler/test_bits.py"]
        for room in ("engine/registry", "operators")
    },
    "engine/core": [
        "tests/test_torch_says.py",
        "tests/engine/core",
        "tests/test_random_programs.py",
        *ROWS,
    ],
    "engine/system": [
        "tests/engine/system",
        "tests/engine/core",
        "tests/columns/compiler",
        "tests/commands",
    ],
    "language": ["tests/language", "tests/commands"],
    "graphs": ["tests/graphs", "tests/commands/test_command_graph.py"],
    "transforms/tracing": ["tests/columns/compiler", "tests/transforms/tracing", "tests/formulas"],
    "transforms": ["tests/transforms", "tests/commands/test_check.py"],
    "formulas": [
        *("tests/formulas", "tests/commands/test_diff.py", "tests/commands/test_check.py"),
        "tests/test_torch_says.py",
    ],
    "columns/compiler": ["tests/columns/compiler"],
}
FIRST = 3  # files to try before the others
PATIENCE = 900  # seconds; what takes longer for being broken is noticed
FLIPS: dict[type[ast.operator], str] = {ast.Mult: "/", ast.Add: "-", ast.Sub: "+", ast.Div: "*"}


@dataclass(frozen=True)
class Change:
    """One broken place: the text at [start, end) of a file becomes another."""

    kind: str
    path: str
    line: int
    start: int
    end: int
    before: str
    after: str


def _offsets(source: str) -> list[int]:
    found = [0]
    for line in source.splitlines(keepends=True):
        found.append(found[-1] + len(line.encode()))
    return found


def _changes(path: Path) -> Iterator[Change]:
    """What can be broken in a file: the arithmetic of rules, sizes and axes, guards that refuse."""
    source = path.read_text(encoding="utf-8")
    data, starts = source.encode(), _offsets(source)

    def change(kind: str, node: ast.expr, after: str) -> Change:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        name = str(path.relative_to(ROOT))
        return Change(kind, name, node.lineno, start, end, data[start:end].decode(), after)

    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.decorator_list:
            for statement in node.body:
                if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Lambda):
                    yield from (change("rule", n, a) for n, a in _arithmetic(statement.value.body))
        elif isinstance(node, ast.keyword) and node.arg in ("keepdims", "keepdim"):
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
                yield change("shape", node.value, str(not node.value.value))
        elif isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise):
            yield change("guard", node.test, f"not ({ast.unparse(node.test)})")
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "refuse_if":
            yield change("guard", node.args[0], f"not ({ast.unparse(node.args[0])})")


def _arithmetic(body: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    for node in ast.walk(body):
        if isinstance(node, ast.BinOp) and type(node.op) in FLIPS:
            left, right = ast.unparse(node.left), ast.unparse(node.right)
            yield node, f"(({left}) {FLIPS[type(node.op)]} ({right}))"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield node, f"({ast.unparse(node.operand)})"


def chosen(seed: int, count: int) -> list[Change]:
    """So many places of all kinds: half of them rules, the others shapes and guards."""
    by_kind: dict[str, list[Change]] = {"rule": [], "shape": [], "guard": []}
    for room in TESTS:
        for path in sorted((ROOT / "gradcli" / room).rglob("*.py")):
            if path.name not in (
                "parser_tables.py",
                "index.py",
                "make_index.py",
                "compile_grammar.py",
            ):
                for found in _changes(path):
                    by_kind[found.kind].append(found)
    rnd = random.Random(seed)
    sizes = {"rule": count // 2, "shape": count // 10, "guard": count - count // 2 - count // 10}
    return [c for kind, n in sizes.items() for c in rnd.sample(by_kind[kind], n)]


def room_of(change: Change) -> str:
    return next(room for room in TESTS if change.path.startswith(f"gradcli/{room}/"))


def files(copy: Path, names: list[str]) -> list[str]:
    """The test files of these names, those that are named themselves first."""
    found = [n for n in names if n.endswith(".py")]
    for folder in names:
        found += sorted(str(p.relative_to(copy)) for p in (copy / folder).rglob("test_*.py"))
    return list(dict.fromkeys(found))


def failures(copy: Path, tests: list[str], *options: str, **settings: str) -> list[str]:
    """The tests of these files that fail, by their names."""
    # The recordings are held against torch elsewhere: no broken source changes what torch says.
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *tests],
        cwd=copy, env={**os.environ, "PYTHONPATH": str(copy), "COLUMNS": "300", **settings},
        check=False, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    if done.returncode > 2:
        raise SystemExit(f"pytest: {done.stderr or done.stdout[-2000:]}")
    lines = done.stdout.splitlines()
    found = [s for s in lines if s.startswith(("FAILED", "ERROR"))]
    return found if found or not done.returncode else [lines[-1]]


def noticed(change: Change, copy: Path, tests: list[str], *options: str) -> str:
    """The first of the tests that fails on the broken sources, or nothing."""
    path = copy / change.path
    whole, times = path.read_bytes(), path.stat()
    path.write_bytes(whole[: change.start] + change.after.encode() + whole[change.end :])
    try:
        for part in (tests[:FIRST], tests[FIRST:]):  # most mutations end with the likely ones
            found = failures(copy, part, "-x", "-n", "0", *options, PYTHONDONTWRITEBYTECODE="1")
            if found:
                return found[0]
        return ""
    except subprocess.TimeoutExpired:
        return f"nothing within {PATIENCE} s"
    finally:
        path.write_bytes(whole)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # what was compiled holds again


def main() -> None:
    """Break, test, mend, place by place."""
    parser = argparse.ArgumentParser(description="Do the tests notice what is broken?")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=50)
    options = parser.parse_args()
    changes = chosen(options.seed, options.count)
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        skipped = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "*.egg-info")
        shutil.copytree(ROOT, copy, ignore=skipped)
        tests = {room: files(copy, names) for room, names in TESTS.items()}
        rooms = dict.fromkeys(room_of(change) for change in changes)
        before = failures(copy, list(dict.fromkeys(t for room in rooms for t in tests[room])))
        left_out = [f"--deselect={line.partition(' ')[2].partition(' - ')[0]}" for line in before]
        for line in before:
            print(f"fails before anything is broken, and is left out: {line}", flush=True)
        for number, change in enumerate(changes, 1):
            found = noticed(change, copy, tests[room_of(change)], *left_out)
            missed += not found
            place = f"{change.kind:5}  {change.path}:{change.line}"
            print(f"{number:3} {'caught' if found else 'MISSED'}  {place}  {found}", flush=True)
            if not found:
                print(f"      {change.before}\n      {change.after}", flush=True)
    print(f"{len(changes) - missed} of {len(changes)} caught")
    sys.exit(missed > len(changes) * (1 - SHARE_CAUGHT))


if __name__ == "__main__":
    main()
