"""Tutorials and recipes are typed as they stand: files are written, commands run in one folder, in order."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.commands import warm
from tests.commands.terminal import environment

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NEEDS = {"nan": "torch"}
TUTORIALS = [
    pytest.param(
        page,
        id=page.stem,
        marks=[pytest.mark.long, *[pytest.mark.needs(NEEDS[n]) for n in [page.stem] if n in NEEDS]],
    )
    for page in sorted([*(DOCS / "tutorials").glob("*.md"), DOCS / "recipes.md", DOCS / "index.md"])
]
_BLOCK = re.compile(r'^```(?:python title="([^"]+)"|(console))\n(.*?)^```$', re.M | re.S)


@pytest.mark.parametrize("page", TUTORIALS)
def test_tutorial(page: Path, tmp_path: Path) -> None:
    scripts = tmp_path / "bin"
    scripts.mkdir()
    warm.script(scripts)
    path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    shell = environment(PATH=path, PYTHONPATH=str(ROOT))
    wrong = []
    for file, console, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if file:
            (tmp_path / file).write_text(text, encoding="utf-8")
        for piece in re.split(r"^\$ ", text, flags=re.M)[1:] if console else []:
            command, _, shown = piece.partition("\n")
            done = subprocess.run(
                ["bash", "-c", command],
                env=shell,
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if done.stdout != shown:
                wrong.append(f"$ {command}\n{done.stdout}")
    assert not wrong, "\n".join(wrong)
