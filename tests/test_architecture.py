"""The house: dependencies point down only, lazy ones too, between rooms and between the files of a room."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.sweep import sweep

PACKAGE = Path(__file__).parents[1] / "gradcli"


def floor_plan() -> dict[str, int]:
    """The floor of every room, as docs/architecture.md has it."""
    text = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", text, re.M)
    return {room: int(floor) for floor, rooms in rows for room in re.findall(r"`([^`]+)`", rooms)}


LEVELS = floor_plan()
# The rooms that operators are declared in.
OPERATORS = ("operators.", "engine.registry")


def room_of(module: str) -> str:
    """The room of a module: the longest name that the floor plan has; (root) for the package itself."""
    name = module.partition(".")[2]
    while name and name not in LEVELS:
        name = name.rpartition(".")[0]
    return name or "(root)"


def modules() -> list[Path]:
    """Every module of the rooms."""
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


@pytest.fixture(scope="module", autouse=True)
def forget() -> Iterator[None]:
    """A million nodes would slow down every collection of garbage in the tests that follow."""
    yield
    tree.cache_clear()


# Imports, in functions too, and blocks for type checkers: a parser takes forty times as long.
IMPORT = re.compile(
    r"^ *(?:from (gradcli[\w.]*) import (\([^)]*\)|.*)|import (gradcli[\w.]*))", re.M
)
TYPES = re.compile(r"^( *)if TYPE_CHECKING:.*\n(?:(?:\1 +.*)?\n)*", re.M)


@cache
def imports(path: Path, types: bool = False) -> frozenset[str]:
    """The gradcli modules that a module imports, at load or later; types: those for type checkers too."""
    found = set()
    for module, listed, whole in IMPORT.findall(text(path) if types else TYPES.sub("", text(path))):
        words = re.sub(r"#.*", "", listed).strip("()").split(",") if module else []
        for word in filter(None, (w.split(" as ")[0].strip() for w in words)):
            file = PACKAGE.parent / f"{module}.{word}".replace(".", "/")
            is_module = file.with_suffix(".py").exists() or file.is_dir()
            found.add(f"{module}.{word}" if is_module else module)
        found |= {whole} - {""}
    return frozenset(found)


@sweep("path", modules, name=name_of, parts=1)
def test_imports_point_down(path: Path) -> None:
    room = room_of(name_of(path))
    for target in imports(path):
        other = room_of(target)
        if other != room:
            assert LEVELS[other] < LEVELS[room], f"{name_of(path)} imports {target}"


# Folders of rooms: their own `__init__` holds no code.
FOLDERS = {"engine", "operators", "formulas", "columns"}


def test_the_floor_plan_has_every_room_and_no_other() -> None:
    assert set(LEVELS) == {room_of(name_of(p)) for p in modules()}
    homeless = {name_of(p) for p in modules() if room_of(name_of(p)) == "(root)"}
    assert homeless == {"gradcli", *(f"gradcli.{folder}" for folder in FOLDERS)}
    assert all(len(tree(PACKAGE / folder / "__init__.py").body) == 1 for folder in FOLDERS)


def circles(types: bool = False) -> set[frozenset[str]]:
    """The groups of modules that import each other, lazily too (Tarjan's strong components).

    types: counting what is imported for type checkers alone.
    """
    graph = {name_of(p): sorted(imports(p, types)) for p in modules()}
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: set[frozenset[str]] = set()
    for start in graph:
        stack = [] if start in number else [(start, iter(graph[start]))]
        while stack:
            name, rest = stack[-1]
            if name not in number:
                number[name] = low[name] = len(number)
                path.append(name)
            following = next(
                (n for n in rest if n in graph and (n not in number or n in path)), None
            )
            if following is not None:
                if following not in number:
                    stack.append((following, iter(graph[following])))
                else:
                    low[name] = min(low[name], low[following])
                continue
            stack.pop()
            if stack:
                low[stack[-1][0]] = min(low[stack[-1][0]], low[name])
            if low[name] == number[name]:
                at = path.index(name)
                found.add(frozenset(path[at:]))
                del path[at:]
    return {group for group in found if len(group) > 1}


def test_no_circles() -> None:
    assert [sorted(group) for group in circles()] == []


def test_no_large_circles_of_types() -> None:
    """What a reader has to know together: files whose annotations name each other are four at most."""
    assert [sorted(group) for group in circles(types=True) if len(group) > 4] == []


CHANGED = """
import random, sys, threading, tracemalloc, warnings
import numpy
def state():
    return (list(warnings.filters), numpy.geterr(), random.getstate(), numpy.random.get_state()[1].tolist(),
            threading.active_count(), sys.getrecursionlimit(), sys.flags, list(sys.path_hooks))
before = state()
tracemalloc.start()
import {module}
taken = tracemalloc.get_traced_memory()[1]
assert state() == before, "the process is another"
assert taken < 20 << 20, taken
drawing = {{"gradcli.engine.core.random", "gradcli.engine.system.fma"}} & set(sys.modules)
assert not drawing or "primitives" in "{module}", drawing
"""


@pytest.mark.parametrize(
    "module",
    [
        "gradcli",
        "gradcli.engine.core",
        "gradcli.engine.core.backward_pass",
        "gradcli.operators.primitives.arithmetic",
    ],
)
def test_importing_changes_nothing(module: str) -> None:
    subprocess.run([sys.executable, "-c", CHANGED.format(module=module)], check=True)


def test_commands_import_nothing_heavy_for_help() -> None:
    """Checked for real in a process by tests/commands; here: cli.py names no heavy module."""
    heavy = {"numpy", "lark", "rich"}
    nodes = ast.walk(tree(PACKAGE / "cli.py"))
    named = {a.name.split(".")[0] for n in nodes if isinstance(n, ast.Import) for a in n.names}
    assert not named & heavy


@pytest.mark.long
def test_nothing_but_the_gate_calls_lapack() -> None:
    """Given infinities or NaN, LAPACK may not return, or print: `primitives/lapack.py` stands before it."""
    lapack = ("svd", "svdvals", "eig", "eigvals", "eigh", "eigvalsh", "qr", "inv", "solve", "det")
    more = ("slogdet", "cholesky", "pinv", "lstsq", "matrix_rank", "cond", "matrix_norm")
    calls = [
        f"{path.name}:{node.lineno}"
        for path in modules()
        if path.name != "lapack.py" and "linalg" in text(path)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in (*lapack, *more)
        and ast.unparse(node.func.value) in ("np.linalg", "scipy.linalg")
    ]
    assert calls == []


def strings(path: Path) -> set[str]:
    """The words in quotes of a module."""
    return set(re.findall(r"""["'](\w+)["']""", text(path)))


def is_name_of_primitive(node: ast.AST) -> bool:
    """Whether an expression is `primitive.name`, of whatever primitive."""
    owner = node.value if isinstance(node, ast.Attribute) and node.attr == "name" else None
    return getattr(owner, "id", getattr(owner, "attr", None)) == "primitive"


def test_primitives_are_named_by_operators_alone() -> None:
    """What holds for a primitive alone is a fact of it: no other room asks which one it is.

    The functions of the language are words that any room may write, and a primitive may have the name of one;
    so nothing may be decided by the name of a primitive either.
    """
    from gradcli.engine.registry import table

    table.load()
    words = {*table.FUNCTIONS, *(name.rpartition(".")[2] for name in table.FUNCTIONS)}
    rows = {row.name for row in table.PRIMITIVES} - words
    outside = [p for p in modules() if not room_of(name_of(p)).startswith(OPERATORS)]
    assert {name_of(p): found for p in outside if (found := strings(p) & rows)} == {}
    decided = [
        f"{name_of(path)}:{node.lineno}: {ast.unparse(node)}"
        for path in outside
        if "primitive.name" in text(path)
        for node in ast.walk(tree(path))
        if isinstance(node, (ast.Compare, ast.Subscript, ast.Call, ast.Attribute))
        and any(map(is_name_of_primitive, ast.iter_child_nodes(node)))
    ]
    assert decided == []


def test_no_class_says_that_it_is_another() -> None:
    """What a kernel or a rule takes for an array is `system.array_memory.ARRAYS`, not what claims
    to be one."""
    # What a function of arrays gets claims it to that function alone: kernels get the tensor in it.
    naming = [tree(p) for p in modules() if "__class__" in text(p) and p.stem != "followed_arrays"]
    classes = (n for t in naming for n in ast.walk(t) if isinstance(n, ast.ClassDef))
    named = {a.id for c in classes for s in c.body for a in ast.walk(s) if isinstance(a, ast.Name)}
    assert "__class__" not in named


def test_every_error_is_caught_with_a_reason() -> None:
    """`except Exception` hides faults: it stands around the user's own code, and says why."""
    bare = [
        f"{name_of(path)}:{number}"
        for path in modules()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"except( \(?Exception\b.*)?:", line) and "#" not in line
    ]
    assert bare == []


def test_rules_tell_arrays_and_tensors_apart_in_one_place() -> None:
    """A rule is written once; which of the two it is given, `registry.rule_helpers` asks, and
    nothing else."""
    asking = [name_of(p) for p in modules() if re.search(r"\bis_array\(", p.read_text("utf-8"))]
    assert asking == ["gradcli.engine.registry.rule_helpers"]


def test_the_parameters_of_operators_and_of_the_engine_have_types() -> None:
    """What is `Any` to a reader is at most a fifth of a folder's parameters; `dtypes` has names."""
    operators = [f"operators/{folder}" for folder in ("primitives", "composites", "movement", "nn")]
    for folder in (*operators, "engine/core", "engine/system", "engine/registry"):
        found = [
            annotation.group(1).strip()
            for path in (PACKAGE / folder).glob("*.py")
            for signature in SIGNATURE.finditer(text(path))
            for annotation in ANNOTATION.finditer(signature.group(1))
        ]
        assert len(found) > 300
        assert found.count("Any") <= 0.2 * len(found), folder
    for file in ("core/declaration.py", "system/dtypes.py"):
        assert not re.search(r"= \"?Any\b", text(PACKAGE / "engine" / file))


# The parameters of a function, up to where its result or its body begins; and how one is annotated.
SIGNATURE = re.compile(r"^ *def \w+\((.*?)\)(?: ->|:\n)", re.M | re.S)
ANNOTATION = re.compile(r"\w: ((?:[^,=\[]|\[[^\]]*\])+)")
