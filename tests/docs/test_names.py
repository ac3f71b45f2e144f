"""What docstrings, comments and pages name in backquotes exists: files, modules, classes, functions."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.test_architecture import PACKAGE, modules, name_of, text, tree

TOP = PACKAGE.parent
PAGES = [
    *(TOP / n for n in ("CONTRIBUTING.md", "README.md", "docs/architecture.md", "docs/model.md")),
    *PACKAGE.glob("*/README.md"),
]
FOLDERS = ("gradcli", "tests", "docs", "grammars", "examples")
WORD = re.compile(r"`([^`\s]+)`")
FILE = re.compile(r"[\w/-]*\w\.(?:py|lark|js|css)")
DOTTED = re.compile(r"[a-z_]\w*(?:\.\w+)+")


@cache
def homes() -> dict[str, list[str]]:
    """{the end of a module's name: the modules that end so}, of whatever length."""
    found = defaultdict(list)
    for path in modules():
        parts = name_of(path).split(".")
        for start in range(len(parts)):
            found[".".join(parts[start:])].append(name_of(path))
    return found


@cache
def defined(module: str) -> frozenset[str]:
    """The names of a module, and `Class.attribute` of its classes."""
    path = TOP / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = set(
        re.findall(r"^(?:def|class|async def) (\w+)|^(\w+)(?:: [^=]+)? = ", text(path), re.M)
    )
    names = {a or b for a, b in found}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ClassDef):
            inside = re.findall(
                r"self\.(\w+)\b|def (\w+)|^    (?!def )(\w+)\b", ast.unparse(node), re.M
            )
            names |= {f"{node.name}.{a or b or c}" for a, b, c in inside}
        if isinstance(node, ast.ImportFrom | ast.Import):
            names |= {(alias.asname or alias.name) for alias in node.names}
    return frozenset(names)


def exists(word: str) -> bool:
    """Whether a dotted word names a module, or something in one; True for what is none of ours."""
    parts = word.split(".")
    known = [k for k in range(1, len(parts) + 1) if ".".join(parts[:k]) in homes()]
    if not known or parts[0] == "gradcli":
        return is_public(parts) if parts[0] == "gradcli" else True
    rest = ".".join(parts[known[-1] :])
    places = homes()[".".join(parts[: known[-1]])]
    return not rest or any(rest in defined(place) for place in places)


def is_public(parts: list[str]) -> bool:
    """Whether `gradcli.a.b` can be had, as users have it."""
    for k in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:k]))
        except ImportError:
            continue
        for name in parts[k:]:
            found = getattr(found, name, None)
        return found is not None
    return False


def said(path: Path) -> list[str]:
    """The backquoted words of a module's docstrings and comments, or of a page, and files without quotes."""
    if path.suffix == ".md":
        return WORD.findall(text(path))
    nodes = [
        n
        for n in ast.walk(tree(path))
        if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)
    ]
    docs = [ast.get_docstring(n) or "" for n in nodes]
    comments = re.findall(r"(?:^ *|  )# .*", text(path), re.M)
    words = "\n".join([*docs, *comments])
    return [*WORD.findall(words), *re.findall(r"(?<![\w/.`'\"-])[a-z_]\w*\.py\b", words)]


EXAMPLES = {"FILE.py", "net.py", "noxfile.py"}  # a user's, and one at the top


@pytest.mark.long
def test_files_exist() -> None:
    files = {p.relative_to(TOP).as_posix() for f in FOLDERS for p in (TOP / f).rglob("*.*")}
    lost = {
        (name_of(path) if path.suffix == ".py" else path.name, word)
        for path in [*modules(), *PAGES]
        for word in said(path)
        if FILE.fullmatch(word)
        and word not in EXAMPLES
        and not any(f"/{file}".endswith(f"/{word}") for file in files)
    }
    assert lost == set()


# What users write: names of PyTorch and of the language, which modules here happen to have too.
USERS = {
    "node",
    "torch",
    "autograd",
    "linalg",
    "nn",
    "func",
    "special",
    "fft",
    "random",
    "utils",
    "cuda",
}


@pytest.mark.long
def test_names_exist() -> None:
    lost = {
        (name_of(path), word)
        for path in modules()
        for word in said(path)
        if DOTTED.fullmatch(word)
        and not FILE.fullmatch(word)
        and word.partition(".")[0] not in USERS
        and not exists(word)
    }
    assert lost == set()


@cache
def classes() -> dict[str, list[str]]:
    """{a class's name: the modules that have one of that name}."""
    found = defaultdict(list)
    for path in modules():
        for name in re.findall(r"^class (\w+)", text(path), re.M):
            found[name].append(name_of(path))
    return found


@pytest.mark.long
def test_attributes_exist() -> None:
    """`Class.attribute`, where the class is one of ours."""
    words = {
        (name_of(path), w)
        for path in modules()
        for w in said(path)
        if re.fullmatch(r"[A-Z]\w+\.\w+", w)
    }
    lost = {
        (place, word)
        for place, word in words
        if (homes_of := classes().get(word.partition(".")[0]))
        and word.partition(".")[0] != "Tensor"  # its methods come from the table
        and not any(word in defined(home) for home in homes_of)
    }
    assert lost == set()
