"""The pages in docs/ say what the source says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs"


def script(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages():
    return script("generate").pages()


def test_the_page_has_the_layout_of_the_pictures():
    javascript = script("javascript")
    stored = javascript.TARGET.read_text(encoding="utf-8")
    assert stored == javascript.translated(), "out of date: run python docs/javascript.py"
    with pytest.raises(NotImplementedError, match="line 1: async"):
        list(javascript.body(javascript.ast.parse("async def f(): pass").body, "  "))


@pytest.mark.parametrize("name", ["commands/map.md", "language.md", "graph.svg"])
def test_fresh(pages, name):
    stored = (FOLDER / name).read_text(encoding="utf-8")
    assert pages[name] == stored, "out of date: run python docs/generate.py"


def test_complete(pages):
    from gradcli.commands import COMMANDS

    files = {
        path.relative_to(FOLDER).as_posix(): path
        for path in FOLDER.rglob("*")
        if path.suffix in (".md", ".svg", ".1")
    }
    generated = {n for n, p in files.items() if "Written by docs/generate.py" in p.read_text()}
    assert {*pages} <= {*files} and generated <= {*pages}
    for command in COMMANDS:
        assert f"# gradcli {command}\n" in pages[f"commands/{command}.md"]
