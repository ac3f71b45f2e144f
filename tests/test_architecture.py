"""The house: dependencies point down only, no two modules import each other at load time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "gradcli"

# From the ground up; a room may import rooms of a lower number, and its own.
LEVELS = {
    "engine": 0,
    "operators": 1,
    "graphs": 1,
    "tables": 1,
    "language": 2,
    "recording": 2,
    "calculus": 3,
    "plan": 4,
    "repl": 4,
    "commands": 5,
    "cli": 6,
}


def room_of(module: str) -> str | None:
    """The room of `gradcli.ROOM...`; None for the namespaces beside the rooms."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "gradcli" and parts[1] in LEVELS else None


def modules() -> list[Path]:
    """Every module of the rooms."""
    return [p for p in sorted(PACKAGE.rglob("*.py")) if room_of(name_of(p)) is not None]


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, top_only: bool = False) -> Iterator[str]:
    """The gradcli modules that a module imports; top_only: when it is loaded, not when called."""
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_only else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("gradcli"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gradcli"):
            for a in node.names:
                whole = f"{node.module}.{a.name}"
                is_module = (PACKAGE.parent / (whole.replace(".", "/") + ".py")).exists()
                yield whole if is_module else str(node.module)


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_point_down(path: Path) -> None:
    room = room_of(name_of(path))
    assert room is not None
    for target in imports(path):
        other = room_of(target)
        if other is None or other == room:
            continue
        assert LEVELS[other] < LEVELS[room], f"{name_of(path)} imports {target}"


def test_operators_stand_without_nn() -> None:
    """The neural networks' part imports operators; no other operator imports it."""
    nn = "gradcli.operators.nn"
    found = [
        f"{name_of(path)} imports {target}"
        for path in sorted((PACKAGE / "operators").glob("*.py"))
        for target in imports(path)
        if target == nn or target.startswith(f"{nn}.")
    ]
    assert found == []


def test_nn_needs_operators_only() -> None:
    rooms = {
        room_of(target)
        for path in (PACKAGE / "operators" / "nn").glob("*.py")
        for target in imports(path)
    }
    assert rooms == {"operators", "engine"}


def test_no_circles_at_load_time() -> None:
    graph = {name_of(p): set(imports(p, top_only=True)) for p in modules()}
    done: set[str] = set()
    for start in graph:
        path: list[str] = []
        stack = [(start, iter(sorted(graph.get(start, ()))))]
        path.append(start)
        while stack:
            name, rest = stack[-1]
            following = next((n for n in rest if n in graph and n not in done), None)
            if following is None:
                done.add(name)
                stack.pop()
                path.pop()
                continue
            assert following not in path, " -> ".join([*path, following])
            path.append(following)
            stack.append((following, iter(sorted(graph[following]))))


def test_commands_import_nothing_heavy_for_help() -> None:
    """Checked for real in a process by tests/commands; here: cli.py names no heavy module."""
    heavy = {"numpy", "lark", "rich"}
    tree = ast.parse((PACKAGE / "cli.py").read_text())
    named = {
        a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names
    }
    assert not named & heavy
