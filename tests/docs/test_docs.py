"""The pages in docs/ say what the source says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def pages():
    spec = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


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
