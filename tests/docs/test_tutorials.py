"""Tutorials and recipes are typed as they stand: files are written, commands run in one folder, in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.commands.running import ROOT, in_a_shell, typed

DOCS = ROOT / "docs"
NEEDS = {"nan": "torch"}
TUTORIALS = [
    pytest.param(
        page,
        id=page.stem,
        marks=[pytest.mark.long, *[pytest.mark.needs(NEEDS[n]) for n in [page.stem] if n in NEEDS]],
    )
    for page in sorted(
        [
            *(DOCS / "tutorials").glob("*.md"),
            *(DOCS / f"{name}.md" for name in ("recipes", "index", "python")),
        ]
    )
]
_BLOCK = re.compile(r'^```(?:(?:python|sh) title="([^"]+)"|(console))\n(.*?)^```$', re.M | re.S)


@pytest.mark.parametrize("page", TUTORIALS)
def test_tutorial(page: Path, tmp_path: Path) -> None:
    wrong = []
    for file, console, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if file:
            (tmp_path / file).write_text(text, encoding="utf-8")
        for command, shown in typed(text) if console else []:
            printed = in_a_shell(command, tmp_path, tmp_path / "bin")
            if printed != shown:
                wrong.append(f"$ {command}\n{printed}")
    assert not wrong, "\n".join(wrong)
